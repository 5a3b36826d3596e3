"""What other services' facts say about one run: a fold over its attempts, checkpoints and evaluations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeAlias

from trackway_common.events import (
    AttemptEnded,
    CheckpointAbandoned,
    CheckpointCommitted,
    CheckpointDeleted,
    CheckpointQuarantined,
    CheckpointRef,
    CheckpointTombstoned,
    EvaluationCompleted,
    EvaluationExhausted,
    Fact,
)

EvaluationOutcomeFact: TypeAlias = EvaluationCompleted | EvaluationExhausted


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The commit that brought a fact: what a reaction to it is derived from."""

    commit_id: str
    traceparent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenEnd:
    """An attempt's end, as its agent reported it."""

    cause: Cause
    fact: AttemptEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenOutcome:
    """An evaluation's end."""

    cause: Cause
    fact: EvaluationOutcomeFact
    round: int = 1
    """How many ends of this evaluation there were, this one included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What is known about one run from topics that others own."""

    ends: Mapping[int, SeenEnd] = field(default_factory=dict)
    """By attempt."""
    outcomes: Mapping[str, SeenOutcome] = field(default_factory=dict)
    """By evaluation id."""
    commits: tuple[CheckpointRef, ...] = ()
    """In slot order, those that can still be restored."""
    settled: frozenset[str] = frozenset()
    """Nonces of captures that were committed or abandoned."""
    gone: frozenset[int] = frozenset()
    """Commit slots that can't be restored any more."""


def note(outside: Outside, fact: Fact, cause: Cause) -> Outside:
    """What is known after one more fact; most facts change nothing here."""
    match fact:
        case AttemptEnded():
            # The first end counts; whatever comes later is evidence. What was observed decides nothing here.
            end = SeenEnd(cause=cause, fact=replace(fact, observations=()))
            return replace(outside, ends={fact.attempt: end, **outside.ends})
        case CheckpointCommitted():
            ref = fact.checkpoint
            return replace(outside, commits=(*outside.commits, ref), settled=outside.settled | {ref.nonce})
        case CheckpointAbandoned():
            return replace(outside, settled=outside.settled | {fact.nonce})
        case CheckpointQuarantined() | CheckpointTombstoned() | CheckpointDeleted():
            return _without(outside, fact.commit_slot)
        case EvaluationCompleted() | EvaluationExhausted():
            # The last one counts: an evaluation that is ordered again ends again.
            before = outside.outcomes.get(fact.evaluation_id)
            seen = SeenOutcome(cause=cause, fact=fact, round=before.round + 1 if before else 1)
            return replace(outside, outcomes={**outside.outcomes, fact.evaluation_id: seen})
        case _:
            return outside


def last_committed(outside: Outside, *also: CheckpointRef | None) -> CheckpointRef | None:
    """Newest checkpoint that can be restored, among what was read here and what others say they read."""
    known = [*outside.commits, *(ref for ref in also if ref is not None and ref.slot not in outside.gone)]
    return max(known, key=lambda ref: ref.slot, default=None)


def unsettled(outside: Outside, captures: tuple[str, ...]) -> tuple[str, ...]:
    """Captures that were neither committed nor abandoned yet.

    They are named by nonce, or `s{step}-e{epoch}-{nonce}` as in the store.
    """
    return tuple(
        capture
        for capture in captures
        if capture not in outside.settled and capture.rpartition("-")[2] not in outside.settled
    )


def captures_before(outside: Outside, attempt: int) -> tuple[str, ...]:
    """Captures that the attempt before left in flight."""
    before = outside.ends.get(attempt - 1)
    return () if before is None else unsettled(outside, before.fact.captures_in_flight)


def is_older_than(moment: datetime, now: datetime, seconds: float) -> bool:
    """Tell whether a moment lies at least that far back."""
    return (now - moment).total_seconds() >= seconds


def _without(outside: Outside, slot: int) -> Outside:
    commits = tuple(ref for ref in outside.commits if ref.slot != slot)
    return replace(outside, commits=commits, gone=outside.gone | {slot})
