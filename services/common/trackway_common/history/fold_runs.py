"""The scheduler's facts about a run."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from trackway_common.events import (
    AttemptPlaced,
    AttemptRefused,
    AttemptWrittenOff,
    CancelRequested,
    Fact,
    FinalEvaluationOrdered,
    RetryDecided,
    RunCancelled,
    RunFailed,
    RunHeld,
    RunPhase,
    RunQueued,
    RunRefused,
    RunReleased,
    RunSubmitted,
    RunSucceeded,
)
from trackway_common.history.model import RunHistory
from trackway_common.history.parts import with_attempt, with_evaluation


def evolve_run(history: RunHistory, fact: Fact, *, traceparent: str = "") -> RunHistory:
    """Apply one fact of stream ``runs/{run}``; facts that say nothing about the run change nothing."""
    match fact:
        case RunSubmitted():
            history = replace(history, submitted=fact, traceparent=traceparent)
        case RunRefused():
            history = replace(history, refused=fact)
        case CancelRequested():
            return replace(history, cancel=fact)
        case RunReleased():
            return replace(history, releases=(*history.releases, fact))
        case RunQueued():
            history = with_attempt(history, fact.attempt, lambda a: replace(a, queued=(*a.queued, fact)))
        case AttemptPlaced():
            history = with_attempt(history, fact.attempt, lambda a: replace(a, placed=fact))
        case AttemptRefused():
            return with_attempt(history, fact.attempt, lambda a: replace(a, refused=fact))
        case AttemptWrittenOff():
            return with_attempt(history, fact.attempt, lambda a: replace(a, written_off=fact))
        case RetryDecided():
            return with_attempt(history, fact.attempt, lambda a: replace(a, decision=fact))
        case FinalEvaluationOrdered():
            history = with_evaluation(history, fact.evaluation_id, lambda e: replace(e, ordered=fact))
        case _:
            pass
    return _with_phase(history, fact)


def phase_after(fact: Fact) -> tuple[RunPhase, datetime, str, str] | None:
    """Phase that a fact puts its run into, since when, with token and sentence; None when it leaves the phase."""
    match fact:
        case RunSubmitted():
            return RunPhase.SUBMITTED, fact.submitted_at, "", ""
        case RunRefused():
            return RunPhase.REFUSED, fact.refused_at, "REFUSED", fact.message
        case RunQueued():
            return RunPhase.QUEUED, fact.queued_at, "", ""
        case AttemptPlaced():
            return RunPhase.RUNNING, fact.placed_at, "", ""
        case FinalEvaluationOrdered():
            return RunPhase.EVALUATING, fact.ordered_at, "", ""
        case RunHeld():
            return RunPhase.HELD, fact.held_at, fact.reason, fact.message
        case RunSucceeded():
            return RunPhase.SUCCEEDED, fact.ended_at, "", ""
        case RunFailed():
            return RunPhase.FAILED, fact.ended_at, fact.reason, fact.message
        case RunCancelled():
            return RunPhase.CANCELLED, fact.ended_at, "CANCELLED", fact.reason
    return None


def _with_phase(history: RunHistory, fact: Fact) -> RunHistory:
    entered = phase_after(fact)
    if entered is None:
        return history
    phase, at, reason, message = entered
    return replace(history, phase=phase, phase_at=at, phase_reason=reason, phase_message=message)
