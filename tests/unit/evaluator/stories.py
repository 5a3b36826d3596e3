"""Commands to build evaluations' lives from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from trackway_common.decider import fold
from trackway_common.evaluation_pack import Gate, GateOp
from trackway_common.events import (
    CheckpointRef,
    EvaluationFailure,
    EvaluationPackRef,
    EvaluationPhase,
    Fact,
    TaskMetric,
    TaskResult,
)
from trackway_evaluator.domain.commands import (
    Command,
    CompleteEvaluation,
    RecordFailure,
    RequestEvaluation,
    StartAttempt,
)
from trackway_evaluator.domain.decider import DECIDER
from trackway_evaluator.domain.state import RunEvaluations

NOW = datetime(2026, 11, 21, tzinfo=UTC)
STREAM = "evaluations/run-1"
REQUEST = RequestEvaluation(
    evaluation_id="e1",
    round=1,
    pack=EvaluationPackRef(name="digits", digest="sha256:p"),
    checkpoint=CheckpointRef(run_id="run-1", step=40),
    project="demo",
    model_family="vision",
    final=True,
    requested_at=NOW,
)


def start(attempt: int) -> StartAttempt:
    return StartAttempt(evaluation_id="e1", attempt=attempt, host="h", pid=7, batch_size=32, started_at=NOW)


def failure(attempt: int, kind: EvaluationFailure = EvaluationFailure.CRASH) -> RecordFailure:
    return RecordFailure(
        evaluation_id="e1", attempt=attempt, failure=kind, message="it broke", evidence=(), failed_at=NOW
    )


def completion(attempt: int, accuracy: float = 0.9, *, scored: int = 10) -> CompleteEvaluation:
    metric = TaskMetric(name="accuracy", value=accuracy, samples=scored)
    return CompleteEvaluation(
        evaluation_id="e1",
        attempt=attempt,
        tasks=(TaskResult(task="t", planned=10, scored=scored, metrics=(metric,)),),
        shards=(),
        gates=(Gate(task="t", metric="accuracy", op=GateOp.AT_LEAST, threshold=0.8),),
        environment_digest="sha256:e",
        evaluator_version="0.1",
        completed_at=NOW + timedelta(seconds=9),
        seconds=8.5,
    )


class Story:
    """``given(commands)`` then ``when(command)`` gives facts; everything is folded along the way."""

    def __init__(self, *commands: Command) -> None:
        self.facts: list[Fact] = []
        for command in commands:
            self.when(command)

    def when(self, command: Command) -> tuple[Fact, ...]:
        facts = DECIDER.decide(self.state, command)
        self.facts.extend(facts)
        return facts

    @property
    def state(self) -> RunEvaluations:
        return fold(DECIDER, STREAM, self.facts)

    @property
    def phase(self) -> EvaluationPhase:
        [evaluation] = self.state.evaluations
        return evaluation.phase
