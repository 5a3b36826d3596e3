"""From what a try left to the command that records it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trackway_common.clock import Clock
from trackway_common.errors import CommandRejected, CorruptLog
from trackway_common.events import EvaluationFailure

from trackway_evaluator.adapters.evidence_store import EvidenceStore
from trackway_evaluator.adapters.outcomes import Broken, Outcome, Scored
from trackway_evaluator.domain.commands import CompleteEvaluation, RecordFailure
from trackway_evaluator.domain.order import Order
from trackway_evaluator.protocol import WorkResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Examiner:
    """Looks at results before they count. Blocks on storage."""

    store: EvidenceStore
    clock: Clock

    def examine(self, order: Order, attempt: int, outcome: Outcome, folder: Path) -> CompleteEvaluation | RecordFailure:
        """Completion, or the failure that the outcome is or turns out to be."""
        if isinstance(outcome, Broken):
            return self.failure(order, attempt, outcome)
        try:
            return self._completion(order, attempt, outcome, folder)
        except (CommandRejected, CorruptLog) as error:
            return self.failure(order, attempt, Broken(failure=EvaluationFailure.CRASH, message=str(error)))

    def failure(self, order: Order, attempt: int, broken: Broken) -> RecordFailure:
        """The command that records a try without result."""
        return RecordFailure(
            evaluation_id=order.evaluation_id,
            attempt=attempt,
            failure=broken.failure,
            message=broken.message,
            evidence=broken.evidence,
            failed_at=self.clock.now(),
        )

    def _completion(
        self, order: Order, attempt: int, scored: Scored, folder: Path
    ) -> CompleteEvaluation | RecordFailure:
        pack = self.store.pack(order.pack.digest)
        result = scored.result
        if mismatch := _mismatch(result, self.store.expected_digests(pack, order.spec)):
            return self.failure(
                order, attempt, Broken(failure=EvaluationFailure.TASK_DIGEST_MISMATCH, message=mismatch)
            )
        return CompleteEvaluation(
            evaluation_id=order.evaluation_id,
            attempt=attempt,
            tasks=result.tasks,
            shards=self.store.put_shards(result.shards, folder),
            gates=pack.gates,
            environment_digest=self.store.put_report(result.environment_json),
            evaluator_version=result.evaluator_version,
            completed_at=self.clock.now(),
            seconds=result.seconds,
        )


def _mismatch(result: WorkResult, expected: dict[str, str]) -> str:
    executed = {task.task: task.task_digest for task in result.tasks}
    differing = sorted(task for task in executed.keys() | expected.keys() if executed.get(task) != expected.get(task))
    return "; ".join(
        f"task {task} was executed as {executed.get(task)}, the pack and the run's inputs say {expected.get(task)}"
        for task in differing
    )
