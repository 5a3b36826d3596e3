"""Commands → facts → state of a run's evaluations.

No fact that is made here can start, stop or charge a training attempt: an evaluation's failures are its own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from trackway_common.decider import Decider
from trackway_common.errors import CommandRejected
from trackway_common.events import (
    EvaluationCompleted,
    EvaluationExhausted,
    EvaluationFailed,
    EvaluationPhase,
    EvaluationRequested,
    EvaluationStarted,
    Fact,
    NextMove,
)

from trackway_evaluator.domain import gates
from trackway_evaluator.domain.budgets import RETRIES
from trackway_evaluator.domain.commands import (
    Command,
    CompleteEvaluation,
    RecordFailure,
    RequestEvaluation,
    StartAttempt,
)
from trackway_evaluator.domain.state import Evaluation, RunEvaluations, initial


def decide(state: RunEvaluations, command: Command) -> tuple[Fact, ...]:
    """Facts that the command makes happen; () when they happened already."""
    match command:
        case RequestEvaluation():
            return _request(state.find(command.evaluation_id), command)
        case StartAttempt():
            return _start(_known(state, command.evaluation_id), command)
        case RecordFailure():
            return _fail(_known(state, command.evaluation_id), command)
        case CompleteEvaluation():
            return _complete(_known(state, command.evaluation_id), command)
    assert_never(command)


def evolve(state: RunEvaluations, fact: Fact) -> RunEvaluations:
    """State after a fact; facts of other kinds change nothing."""
    if isinstance(fact, EvaluationRequested):
        return state.with_evaluation(_requested(state.find(fact.evaluation_id), fact))
    if not isinstance(fact, EvaluationStarted | EvaluationFailed | EvaluationCompleted | EvaluationExhausted):
        return state
    known = state.find(fact.evaluation_id)
    return state if known is None else state.with_evaluation(_changed(known, fact))


DECIDER: Decider[RunEvaluations, Command] = Decider(initial, decide, evolve)


def _known(state: RunEvaluations, evaluation_id: str) -> Evaluation:
    known = state.find(evaluation_id)
    if known is None:
        raise CommandRejected(f"run {state.run_id} has no evaluation {evaluation_id}", reason="NO_EVALUATION")
    return known


def _request(known: Evaluation | None, command: RequestEvaluation) -> tuple[Fact, ...]:
    if known is not None and (known.round >= command.round or known.phase is not EvaluationPhase.EXHAUSTED):
        return ()
    requested = EvaluationRequested(
        evaluation_id=command.evaluation_id,
        pack=command.pack,
        checkpoint=command.checkpoint,
        final=command.final,
        project=command.project,
        model_family=command.model_family,
        requested_at=command.requested_at,
    )
    return (requested,)


def _start(known: Evaluation, command: StartAttempt) -> tuple[Fact, ...]:
    if known.attempt_open and known.attempt == command.attempt:
        return ()
    if known.settled or known.attempt_open or command.attempt != known.attempt + 1:
        raise _not_now(known, f"attempt {command.attempt} can't start")
    started = EvaluationStarted(
        evaluation_id=known.evaluation_id,
        evaluation_attempt=command.attempt,
        host=command.host,
        pid=command.pid,
        started_at=command.started_at,
        batch_size=command.batch_size,
    )
    return (started,)


def _fail(known: Evaluation, command: RecordFailure) -> tuple[Fact, ...]:
    could_not_start = not known.settled and not known.attempt_open and command.attempt == known.attempt + 1
    if not could_not_start:
        _check_open(known, command.attempt)
    budget = RETRIES[command.failure]
    struck = known.failed_by(command.failure) + 1
    failed = EvaluationFailed(
        evaluation_id=known.evaluation_id,
        evaluation_attempt=command.attempt,
        failure=command.failure,
        message=command.message,
        evidence=command.evidence,
        move=NextMove.RETRY if struck <= budget else NextMove.HOLD,
        spent=min(struck, budget),
        budget=budget,
        failed_at=command.failed_at,
    )
    if struck <= budget:
        return (failed,)
    exhausted = EvaluationExhausted(
        evaluation_id=known.evaluation_id,
        failure=command.failure,
        message=f"{command.failure.value} for the {_ordinal(struck)} time; {budget} are tried again: {command.message}",
        exhausted_at=command.failed_at,
    )
    return (failed, exhausted)


def _complete(known: Evaluation, command: CompleteEvaluation) -> tuple[Fact, ...]:
    _check_open(known, command.attempt)
    assert known.attempt_started_at is not None, "an open attempt has started"
    verdicts = gates.judge(command.gates, command.tasks)
    completed = EvaluationCompleted(
        evaluation_id=known.evaluation_id,
        evaluation_attempt=command.attempt,
        verdict=gates.overall(verdicts),
        tasks=command.tasks,
        shards=command.shards,
        gates=verdicts,
        environment_digest=command.environment_digest,
        evaluator_version=command.evaluator_version,
        pack_digest=known.pack.digest,
        checkpoint=known.checkpoint,
        project=known.project,
        model_family=known.model_family,
        started_at=known.attempt_started_at,
        completed_at=command.completed_at,
        seconds=command.seconds,
    )
    return (completed,)


def _check_open(known: Evaluation, attempt: int) -> None:
    if known.settled or not known.attempt_open or known.attempt != attempt:
        raise _not_now(known, f"attempt {attempt} can't end")


def _not_now(known: Evaluation, what: str) -> CommandRejected:
    state = f"{known.phase.value}, attempt {known.attempt} {'open' if known.attempt_open else 'ended'}"
    return CommandRejected(f"evaluation {known.evaluation_id} is {state}: {what}", reason="FAILED_PRECONDITION")


def _requested(known: Evaluation | None, fact: EvaluationRequested) -> Evaluation:
    return Evaluation(
        evaluation_id=fact.evaluation_id,
        pack=fact.pack,
        checkpoint=fact.checkpoint,
        project=fact.project,
        model_family=fact.model_family,
        final=fact.final,
        requested_at=fact.requested_at,
        phase=EvaluationPhase.REQUESTED,
        round=1 if known is None else known.round + 1,
        attempt=0 if known is None else known.attempt,
        failures=() if known is None else known.failures,
        failures_before_round=0 if known is None else len(known.failures),
    )


def _changed(
    known: Evaluation, fact: EvaluationStarted | EvaluationFailed | EvaluationCompleted | EvaluationExhausted
) -> Evaluation:
    match fact:
        case EvaluationStarted():
            return replace(
                known,
                phase=EvaluationPhase.RUNNING,
                attempt=fact.evaluation_attempt,
                attempt_open=True,
                attempt_started_at=fact.started_at,
            )
        case EvaluationFailed():
            return replace(
                known,
                phase=EvaluationPhase.RUNNING,
                attempt=fact.evaluation_attempt,
                attempt_open=False,
                failures=(*known.failures, fact),
            )
        case EvaluationCompleted():
            return replace(known, phase=EvaluationPhase.COMPLETED, attempt_open=False, result=fact)
        case EvaluationExhausted():
            return replace(known, phase=EvaluationPhase.EXHAUSTED, attempt_open=False, exhausted=fact)
    assert_never(fact)


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")
