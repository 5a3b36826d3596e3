"""One row of the corpus: what was expected of a fault, and what the log says came out. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trackway_common.events import CausalRole, NextMove, TerminationReason
from trackway_common.reasons import policy_of

from tests.faults.corpus.label import Label

NOTHING = "NONE"
"""No attempt ended within the limit."""
CONSEQUENCES = frozenset({"NETWORK_FABRIC", "COLLECTIVE_TIMEOUT"})
"""Reasons that survivors of somebody else's failure show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A fault that was injected."""

    name: str
    group: str
    held_out: bool
    run_id: str
    attempt: int
    expected_reason: str
    expected_move: str
    expected_ledger: str
    expected_blamed: int | None
    reason: str
    move: str
    ledger: str
    blamed: int | None
    cause: str
    root: dict[str, str]
    """Source, authority and role of the first evidence."""
    classifier_version: str
    ranks: list[dict[str, Any]]
    """Of each rank: process id, exit code, signal, and whether it started and nobody saw its end."""
    hurt: list[dict[str, Any]]
    """What the harness did to which process."""
    seconds: float

    @property
    def right_reason(self) -> bool:
        """The reason is the expected one."""
        return self.reason == self.expected_reason

    @property
    def right_move(self) -> bool:
        """The move and its ledger are those that the reason asks for, be it the expected one or not."""
        if self.right_reason:
            return (self.move, self.ledger) == (self.expected_move, self.expected_ledger)
        return self.reason != NOTHING and self.move == usual_move(self.reason)

    @property
    def cascade_as_root(self) -> bool:
        """A consequence was taken for the cause, or a rank is blamed that only suffered."""
        if self.root.get("role") == CausalRole.CASCADE.value:
            return True
        if self.reason in CONSEQUENCES and not self.right_reason and self.expected_reason not in CONSEQUENCES:
            return True
        return self.expected_blamed is not None and self.blamed is not None and self.blamed != self.expected_blamed


def usual_move(reason: str) -> str:
    """The first move of a run that says nothing about retries: memory is raised without being asked."""
    policy = policy_of(TerminationReason(reason))
    changes_by_itself = policy.reason is TerminationReason.HOST_OOM
    return NextMove.RETRY.value if policy.budget != 0 or changes_by_itself else policy.exhausted.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The part of a row that the run's log holds."""

    reason: str = NOTHING
    move: str = NOTHING
    ledger: str = ""
    blamed: int | None = None
    cause: str = ""
    root: Mapping[str, str]
    classifier_version: str = ""
    ranks: Sequence[Mapping[str, Any]] = ()


def make_row(
    label: Label, run_id: str, observed: Observed, *, hurt: Iterable[Mapping[str, Any]], seconds: float
) -> Row:
    """A label and what came of it."""
    return Row(
        name=label.name,
        group=label.group,
        held_out=label.held_out,
        run_id=run_id,
        attempt=label.attempt,
        expected_reason=label.reason.value,
        expected_move=label.move.value,
        expected_ledger=label.asked_ledger,
        expected_blamed=label.blamed,
        reason=observed.reason,
        move=observed.move,
        ledger=observed.ledger,
        blamed=observed.blamed,
        cause=observed.cause,
        root=dict(observed.root),
        classifier_version=observed.classifier_version,
        ranks=[dict(rank) for rank in observed.ranks],
        hurt=[dict(one) for one in hurt],
        seconds=round(seconds, 1),
    )


def read_rows(path: Path) -> list[Row]:
    """Rows of a file; none where it is not there."""
    if not path.exists():
        return []
    return [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """One line a row, by name."""
    lines = [json.dumps(asdict(row), sort_keys=True) for row in sorted(rows, key=lambda row: row.name)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
