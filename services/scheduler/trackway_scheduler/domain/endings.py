"""What follows the end of an attempt: a decision that names its budget, and where the run goes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from trackway_common.attempt_shape import unless_declared
from trackway_common.deadlines import deadline_of
from trackway_common.evaluation_pack import evaluation_identity
from trackway_common.events import (
    CheckpointRef,
    Fact,
    FinalEvaluationOrdered,
    NextMove,
    RetryDecided,
    RunCancelled,
    RunFailed,
    RunHeld,
    RunQueued,
    RunSpec,
    RunSucceeded,
    TerminationReason,
)
from trackway_common.reasons import policy_of

from trackway_scheduler.domain.budgets import Ruling, attempts_spent, is_counted, measured, progress_of, rule
from trackway_scheduler.domain.commands import AttemptEnd
from trackway_scheduler.domain.remedies import Remedy, find_remedy
from trackway_scheduler.domain.state import RunState

NOTHING_TO_EVALUATE = "NOTHING_TO_EVALUATE"
CANCEL = "cancel"
DEADLINE = "deadline"
_CANCELLED = frozenset({TerminationReason.CANCELLED_BY_USER, TerminationReason.CANCELLED_BY_ADMIN})


def after_end(state: RunState, spec: RunSpec, end: AttemptEnd) -> tuple[Fact, ...]:
    """Facts that follow the end of the run's live attempt."""
    reason = policy_of(end.reason).reason
    if state.cancel is not None or reason in _CANCELLED:
        return _cancelled(state, reason, end)
    remedy = find_remedy(state, spec, end)
    ruling = rule(
        measured(state.ledger, end.last_committed), spec, _attempts(state, end, reason), reason, end.jitter, remedy
    )
    ruling = _within_deadline(ruling, deadline_of(spec.limits, state.submitted_at), end.at)
    decided = _decided(state, reason, end, ruling)
    match ruling.move:
        case NextMove.RETRY:
            decided = _with_remedy(decided, spec, remedy)
            queued = RunQueued(attempt=end.attempt + 1, queued_at=end.at, not_before=decided.not_before)
            return (decided, queued)
        case NextMove.EVALUATE:
            return (decided, final_evaluation(state.run_id, spec, end.last_committed, end.at))
        case NextMove.HOLD:
            return (decided, RunHeld(reason=reason.value, message=_sentences(end, ruling), held_at=end.at))
        case NextMove.STOP | NextMove.UNSPECIFIED:
            return (decided, RunFailed(reason=reason.value, message=_sentences(end, ruling), ended_at=end.at))


def final_evaluation(
    run_id: str, spec: RunSpec, last_committed: CheckpointRef | None, at: datetime
) -> FinalEvaluationOrdered | RunSucceeded | RunFailed:
    """Order the run's own evaluation; a run without a pack has succeeded, one without a checkpoint has failed."""
    pack = spec.evaluation_pack
    if not pack.digest:
        return RunSucceeded(result=last_committed, ended_at=at)
    if last_committed is None:
        message = (
            f"Training ended, but no checkpoint was ever committed, so evaluation pack {pack.name!r} has nothing to"
            f" evaluate. Call checkpoint(step) in the training code, or write folders below $TRACKWAY_CHECKPOINT_DIR."
        )
        return RunFailed(reason=NOTHING_TO_EVALUATE, message=message, ended_at=at)
    identity = evaluation_identity(pack.digest, last_committed.manifest_digest, runner_parameters(spec))
    return FinalEvaluationOrdered(evaluation_id=identity, pack=pack, checkpoint=last_committed, ordered_at=at)


def runner_parameters(spec: RunSpec) -> dict[str, str]:
    """What besides pack and checkpoint can change an evaluation's outcome."""
    return {
        "model": spec.evaluation_model,
        "code": spec.code.archive_digest,
        "config": spec.config_digest,
        "datasets": " ".join(dataset.manifest_digest for dataset in spec.datasets),
    }


def _cancelled(state: RunState, reason: TerminationReason, end: AttemptEnd) -> tuple[Fact, ...]:
    cancel = state.cancel
    asked = reason.value if cancel is None else f"{cancel.actor}: {cancel.reason}" if cancel.reason else cancel.actor
    why = f"The run was cancelled ({asked}); a cancelled run is not retried."
    ruling = Ruling(move=NextMove.STOP, ledger=CANCEL, spent=0, budget=0, backoff_s=0.0, why=why)
    token = reason if reason in _CANCELLED else TerminationReason.CANCELLED_BY_USER
    return (_decided(state, reason, end, ruling), RunCancelled(reason=token.value, ended_at=end.at))


def _attempts(state: RunState, end: AttemptEnd, reason: TerminationReason) -> int:
    """Attempts that count by now."""
    counted = is_counted(reason, progress_of(state.ledger, end.last_committed))
    return attempts_spent(state.ledger, end.attempt) - (not counted)


def _within_deadline(ruling: Ruling, deadline: datetime | None, now: datetime) -> Ruling:
    """An attempt that could not begin before the run's deadline is none worth queuing."""
    if ruling.move is not NextMove.RETRY or deadline is None or now + timedelta(seconds=ruling.backoff_s) < deadline:
        return ruling
    why = f"The run's deadline, {deadline.isoformat(timespec='seconds')}, comes before another attempt could begin."
    return replace(ruling, move=NextMove.STOP, ledger=DEADLINE, backoff_s=0.0, why=why)


def _decided(state: RunState, reason: TerminationReason, end: AttemptEnd, ruling: Ruling) -> RetryDecided:
    return RetryDecided(
        attempt=end.attempt,
        reason=reason,
        move=ruling.move,
        ledger=ruling.ledger,
        spent=ruling.spent,
        budget=ruling.budget,
        backoff_seconds=ruling.backoff_s,
        not_before=end.at + timedelta(seconds=ruling.backoff_s),
        why=ruling.why,
        decided_at=end.at,
        last_committed=end.last_committed,
        progress=progress_of(state.ledger, end.last_committed),
        blamed_node=end.blamed_node,
    )


def _with_remedy(decided: RetryDecided, spec: RunSpec, remedy: Remedy) -> RetryDecided:
    return replace(decided, changes=remedy.changes, shape=unless_declared(remedy.shape, spec))


def _sentences(end: AttemptEnd, ruling: Ruling) -> str:
    return " ".join(part for part in (_sentence(end.cause), ruling.why) if part)


def _sentence(text: str) -> str:
    stripped = text.strip()
    return stripped if not stripped or stripped.endswith((".", "!", "?")) else stripped + "."
