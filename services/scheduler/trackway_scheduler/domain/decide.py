"""Decide commands on one run."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from trackway_common.errors import CommandRejected, FieldViolation, NotFound
from trackway_common.events import (
    AttemptWrittenOff,
    CancelRequested,
    CommandRefused,
    Fact,
    RunCancelled,
    RunPhase,
    RunQueued,
    RunRefused,
    RunSubmitted,
    TerminationReason,
)

from trackway_scheduler.domain.commands import (
    AttemptEnd,
    CancelRun,
    PlaceAttempt,
    RecordAttemptEnded,
    RecordEvaluationCompleted,
    RecordEvaluationExhausted,
    RecordRefusal,
    RefuseRun,
    ReleaseRun,
    RunCommand,
    SubmitRun,
    WriteOffAttempt,
)
from trackway_scheduler.domain.endings import after_end
from trackway_scheduler.domain.evaluations import EvaluationOutcome, conclude
from trackway_scheduler.domain.placing import place
from trackway_scheduler.domain.releases import release
from trackway_scheduler.domain.state import ENDED, RunState

ALREADY_EXISTS = "ALREADY_EXISTS"
RUN_ENDED = "RUN_ENDED"


def decide_run(state: RunState, command: RunCommand) -> tuple[Fact, ...]:
    """Facts that a command makes happen on a run; () when they happened already or no longer matter.

    Raises:
        CommandRejected: the command contradicts the run's state.
        NotFound: nobody submitted the run.
    """
    match command:
        case SubmitRun():
            return _once(state, command.request_digest, lambda: _submit(command))
        case RefuseRun():
            return _once(state, command.request_digest, lambda: (_refused(command),))
        case PlaceAttempt():
            return place(state, command)
        case RecordAttemptEnded():
            return _ended(state, command.end)
        case WriteOffAttempt():
            return _written_off(state, command)
        case CancelRun():
            return _cancel(state, command)
        case ReleaseRun():
            return release(state, command)
        case RecordEvaluationCompleted() | RecordEvaluationExhausted():
            return _evaluated(state, command)
        case RecordRefusal():
            return (_refusal(command),)
        case _:
            assert_never(command)


def _once(state: RunState, request_digest: str, facts: Callable[[], tuple[Fact, ...]]) -> tuple[Fact, ...]:
    if state.phase is RunPhase.UNSPECIFIED:
        return facts()
    if state.request_digest == request_digest:
        return ()
    description = "was used before with another body; mint a new UUIDv7 for a new run"
    raise CommandRejected(
        f"request_id {state.run_id} {description}",
        reason=ALREADY_EXISTS,
        violations=(FieldViolation(field="request_id", description=description),),
    )


def _submit(command: SubmitRun) -> tuple[Fact, ...]:
    submitted = RunSubmitted(
        run_id=command.run_id, spec=command.spec, request_digest=command.request_digest, submitted_at=command.at
    )
    return (submitted, RunQueued(attempt=1, queued_at=command.at, not_before=command.at))


def _refused(command: RefuseRun) -> RunRefused:
    return RunRefused(
        run_id=command.run_id,
        request_digest=command.request_digest,
        message=command.message,
        violations=command.violations,
        refused_at=command.at,
        project=command.project,
        model_family=command.model_family,
        owner=command.owner,
    )


def _ended(state: RunState, end: AttemptEnd) -> tuple[Fact, ...]:
    if state.phase is not RunPhase.RUNNING or state.attempt != end.attempt or state.spec is None:
        return ()
    return after_end(state, state.spec, end)


def _written_off(state: RunState, command: WriteOffAttempt) -> tuple[Fact, ...]:
    follows = _ended(state, command.end)
    if not follows:
        return ()
    written_off = AttemptWrittenOff(
        attempt=command.end.attempt,
        reason=command.end.reason,
        evidence=command.evidence,
        written_off_at=command.end.at,
    )
    return (written_off, *follows)


def _cancel(state: RunState, command: CancelRun) -> tuple[Fact, ...]:
    if state.phase is RunPhase.UNSPECIFIED:
        raise NotFound(f"there is no run {state.run_id}")
    if state.phase in ENDED:
        raise CommandRejected(
            f"run {state.run_id} has ended ({state.phase}); there is nothing left to cancel", reason=RUN_ENDED
        )
    requested = CancelRequested(reason=command.reason, actor=command.actor, requested_at=command.at)
    if state.phase is RunPhase.RUNNING:
        # The agent reads it and stops the ranks; the run ends when the attempt has.
        return () if state.cancel is not None else (requested,)
    return (requested, RunCancelled(reason=TerminationReason.CANCELLED_BY_USER.value, ended_at=command.at))


def _evaluated(state: RunState, outcome: EvaluationOutcome) -> tuple[Fact, ...]:
    ordered = state.evaluation
    if state.phase is not RunPhase.EVALUATING or ordered is None or ordered.evaluation_id != outcome.evaluation_id:
        return ()
    return (conclude(state, outcome),)


def _refusal(command: RecordRefusal) -> CommandRefused:
    return CommandRefused(
        command=command.command,
        actor=command.actor,
        reason=command.reason,
        message=command.message,
        violations=command.violations,
    )
