"""What an explanation is about, gathered once for all of its sections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from trackway_common.errors import NotFound
from trackway_common.events import PoolObserved, RunSpec
from trackway_common.history.model import AttemptHistory, RunHistory
from trackway_common.history.receipt.build import AttemptReceipt, LastSeen, attempt_receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the run's own facts can't say; empty when a copied log is explained."""

    ahead: int | None = None
    """Runs of the same pool that were queued earlier."""
    holders: tuple[str, ...] = ()
    """Attempts that hold the pool now."""
    pool: PoolObserved | None = None
    """What the run's pool last said of itself."""
    agent_heard_at: datetime | None = None
    """Newest heartbeat of the pool's agents; None where heartbeats are not at hand, such as in a copied log."""
    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Evidence that was too long for its fact, by digest, where it was at hand."""
    last_seen: Mapping[int, LastSeen] = field(default_factory=lambda: MappingProxyType({}))
    """By attempt, from telemetry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One attempt of one run."""

    history: RunHistory
    spec: RunSpec
    attempt: AttemptHistory
    receipt: AttemptReceipt
    as_of: datetime
    surroundings: Surroundings

    @property
    def previous(self) -> AttemptHistory | None:
        """The attempt before, if any."""
        return self.history.attempt(self.attempt.attempt - 1)

    @property
    def next(self) -> AttemptHistory | None:
        """The attempt after, if it came so far as to be placed."""
        after = self.history.attempt(self.attempt.attempt + 1)
        return after if after and is_begun(after) else None


def is_begun(attempt: AttemptHistory) -> bool:
    """True once more happened than that the run was queued for it."""
    return attempt.placed is not None or attempt.refused is not None


def newest_begun(history: RunHistory) -> AttemptHistory | None:
    """The attempt that an explanation of the whole run is about."""
    return next((attempt for attempt in reversed(history.attempts) if is_begun(attempt)), None)


def subject_of(history: RunHistory, number: int, as_of: datetime, surroundings: Surroundings) -> Subject:
    """Gather what is known about one attempt.

    Raises:
        NotFound: the run has no such attempt, or it is still waiting for its placement.
    """
    attempt, spec = history.attempt(number), history.spec
    if attempt is None or spec is None:
        raise NotFound(f"run {history.run_id} has no attempt {number}")
    receipt = attempt_receipt(history, number, last_seen=surroundings.last_seen.get(number))
    return Subject(history=history, spec=spec, attempt=attempt, receipt=receipt, as_of=as_of, surroundings=surroundings)
