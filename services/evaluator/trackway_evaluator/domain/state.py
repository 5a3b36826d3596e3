"""What is known of a run's evaluations: a fold of stream evaluations/{run}."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from trackway_common.events import (
    CheckpointRef,
    EvaluationCompleted,
    EvaluationExhausted,
    EvaluationFailed,
    EvaluationFailure,
    EvaluationPackRef,
    EvaluationPhase,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One pack against one committed checkpoint, over all its tries."""

    evaluation_id: str
    pack: EvaluationPackRef
    checkpoint: CheckpointRef
    project: str
    model_family: str
    final: bool
    requested_at: datetime
    phase: EvaluationPhase
    round: int
    """How often it was ordered; each order after an exhaustion begins with fresh budgets."""
    attempt: int = 0
    """Newest try, over all rounds; 0 before the first."""
    attempt_open: bool = False
    """Whether that try has started and no fact says how it ended."""
    attempt_started_at: datetime | None = None
    failures: tuple[EvaluationFailed, ...] = ()
    """Over all rounds, oldest first."""
    failures_before_round: int = 0
    result: EvaluationCompleted | None = None
    exhausted: EvaluationExhausted | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing more will happen without a new order."""
        return self.phase in {EvaluationPhase.COMPLETED, EvaluationPhase.EXHAUSTED}

    def failed_by(self, failure: EvaluationFailure) -> int:
        """How often the failure struck in this round."""
        return sum(one.failure is failure for one in self.failures[self.failures_before_round :])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvaluations:
    """All evaluations of one run."""

    run_id: str
    evaluations: tuple[Evaluation, ...] = ()

    def find(self, evaluation_id: str) -> Evaluation | None:
        """The evaluation of this id, if the run has it."""
        return next((one for one in self.evaluations if one.evaluation_id == evaluation_id), None)

    def with_evaluation(self, changed: Evaluation) -> RunEvaluations:
        """The same with one evaluation replaced or added."""
        others: Iterator[Evaluation] = (one for one in self.evaluations if one.evaluation_id != changed.evaluation_id)
        return RunEvaluations(run_id=self.run_id, evaluations=(*others, changed))


def initial(stream: str) -> RunEvaluations:
    """State of a stream without facts."""
    return RunEvaluations(run_id=stream.partition("/")[2])
