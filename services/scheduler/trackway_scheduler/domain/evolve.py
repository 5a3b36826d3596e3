"""How facts change a run. Never raises, never judges: the fact happened."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from trackway_common.events import (
    AttemptPlaced,
    AttemptRefused,
    AttemptWrittenOff,
    CancelRequested,
    CommandRefused,
    Fact,
    FinalEvaluationOrdered,
    NextMove,
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

from trackway_scheduler.domain.budgets import granted, measured, progress_of
from trackway_scheduler.domain.state import RunState

RunFact: TypeAlias = (
    RunSubmitted
    | RunRefused
    | RunQueued
    | AttemptPlaced
    | AttemptRefused
    | AttemptWrittenOff
    | RetryDecided
    | FinalEvaluationOrdered
    | CancelRequested
    | RunHeld
    | RunReleased
    | RunSucceeded
    | RunFailed
    | RunCancelled
    | CommandRefused
)


def evolve_run(state: RunState, fact: RunFact) -> RunState:
    """State of a run after one more fact."""
    match fact:
        case RunSubmitted():
            return _submitted(state, fact)
        case RunRefused():
            return _refused(state, fact)
        case RunQueued():
            return replace(state, phase=RunPhase.QUEUED, queued=fact)
        case AttemptPlaced():
            return _placed(state, fact)
        case RetryDecided():
            return _decided(state, fact)
        case FinalEvaluationOrdered():
            return _ordered(state, fact)
        case CancelRequested():
            return replace(state, cancel=fact)
        case RunHeld():
            return replace(state, phase=RunPhase.HELD, reason=fact.reason, message=fact.message)
        case RunReleased():
            # A person looked: what counts without progress begins again, what counts over a life does not.
            ledger = replace(state.ledger, since_progress=())
            return replace(state, ledger=ledger, reason="", message=f"released by {fact.actor}: {fact.reason}")
        case RunSucceeded() | RunFailed() | RunCancelled():
            return _ended(state, fact)
        case AttemptRefused() | AttemptWrittenOff() | CommandRefused():
            # What they lead to follows as facts of its own.
            return state


def phase_after(phase: RunPhase, fact: Fact) -> RunPhase:
    """Phase of a run after one more fact of its own stream."""
    return evolve_run(RunState(run_id="", phase=phase), fact).phase if isinstance(fact, RunFact) else phase


def _submitted(state: RunState, fact: RunSubmitted) -> RunState:
    return replace(
        state,
        phase=RunPhase.SUBMITTED,
        project=fact.spec.project,
        model_family=fact.spec.model_family,
        owner=fact.spec.owner,
        spec=fact.spec,
        request_digest=fact.request_digest,
        submitted_at=fact.submitted_at,
    )


def _refused(state: RunState, fact: RunRefused) -> RunState:
    return replace(
        state,
        phase=RunPhase.REFUSED,
        project=fact.project,
        model_family=fact.model_family,
        owner=fact.owner,
        request_digest=fact.request_digest,
        submitted_at=fact.refused_at,
        ended_at=fact.refused_at,
        reason="REFUSED",
        message=fact.message,
        violations=fact.violations,
    )


def _placed(state: RunState, fact: AttemptPlaced) -> RunState:
    running = replace(state, phase=RunPhase.RUNNING, attempt=fact.attempt, placed=fact, queued=None)
    shaped = replace(running, shape=fact.shape, changes=())
    return replace(shaped, reason="", message=f"attempt {fact.attempt} on pool {fact.pool}")


def _ordered(state: RunState, fact: FinalEvaluationOrdered) -> RunState:
    message = f"evaluated by pack {fact.pack.name} at step {fact.checkpoint.step}"
    again = state.evaluation is not None and state.evaluation.evaluation_id == fact.evaluation_id
    return replace(
        state,
        phase=RunPhase.EVALUATING,
        evaluation=fact,
        evaluation_round=state.evaluation_round + 1 if again else 1,
        reason="",
        message=message,
    )


def _decided(state: RunState, fact: RetryDecided) -> RunState:
    ledger = measured(state.ledger, fact.last_committed)
    if fact.move is NextMove.RETRY:
        ledger = granted(ledger, fact.reason, progress_of(state.ledger, fact.last_committed))
    return replace(
        state,
        # A run that ends without a pack passes through EVALUATING too: nothing but its own end follows.
        phase=RunPhase.EVALUATING if fact.move is NextMove.EVALUATE else state.phase,
        ledger=ledger,
        shape=fact.shape if fact.move is NextMove.RETRY else state.shape,
        changes=fact.changes,
        decisions=(*state.decisions, fact),
        last_committed=fact.last_committed or state.last_committed,
        reason=fact.reason.value,
        message=fact.why,
    )


def _ended(state: RunState, fact: RunSucceeded | RunFailed | RunCancelled) -> RunState:
    over = replace(state, ended_at=fact.ended_at, queued=None)
    match fact:
        case RunSucceeded():
            result = fact.result or state.last_committed
            return replace(over, phase=RunPhase.SUCCEEDED, last_committed=result, reason="", message="")
        case RunFailed():
            return replace(over, phase=RunPhase.FAILED, reason=fact.reason, message=fact.message)
        case RunCancelled():
            return replace(over, phase=RunPhase.CANCELLED, reason=fact.reason, message=_who_cancelled(state))


def _who_cancelled(state: RunState) -> str:
    if state.cancel is None:
        return ""
    by = f"by {state.cancel.actor}"
    return f"{by}: {state.cancel.reason}" if state.cancel.reason else by
