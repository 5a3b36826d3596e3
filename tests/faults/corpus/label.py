"""What a fault is, and what Trackway has to say about it: written down before anything classifies it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from trackway_common.events import NextMove, TerminationReason

HELD_OUT_ONE_IN = 5


class By(StrEnum):
    """Who injects it."""

    PROGRAM = "the training program"
    HARNESS = "from outside"


class Need(StrEnum):
    """What a machine must offer for the fault to happen."""

    ROOT = "root"
    CGROUP = "a writable memory cgroup"
    MOUNT = "mount(2)"
    SECOND_NODE = "a second Ray node"
    STACK_ALONE = "a stack that nothing else uses meanwhile"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One mechanism. Variants of its parameters are the same mechanism."""

    name: str
    group: str
    does: str
    """What really happens, in one sentence."""
    reason: TerminationReason
    move: NextMove
    ledger: str = ""
    """Which budget decides; the reason's own where empty."""
    by: By = By.PROGRAM
    needs: frozenset[Need] = frozenset()
    ranks: int = 1
    blamed: int | None = None
    """The rank at which it was injected, where one is to blame and others fail beside it."""
    attempt: int = 1
    """The attempt that is judged; an earlier one may have to leave something behind."""

    @property
    def asked_ledger(self) -> str:
        """Name of the budget that the decision has to name."""
        return self.ledger or self.reason.value

    @property
    def held_out(self) -> bool:
        """Nobody looks at it while signatures are written; counted apart from the others."""
        return int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % HELD_OUT_ONE_IN == 0
