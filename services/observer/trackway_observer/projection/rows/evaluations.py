"""Rows of the evaluations topic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from trackway_common import events as e
from trackway_common.codec import fact_json
from trackway_common.history.wording import checkpoint_name

from trackway_observer.projection.rows.row import Row, Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRow:
    """What was asked for."""

    TABLE: ClassVar[str] = "evaluation_requests_state"
    run_id: str
    evaluation_id: str
    version: int
    project: str
    model_family: str
    pack: str
    pack_digest: str
    checkpoint: str
    checkpoint_step: int
    checkpoint_epoch: int
    checkpoint_digest: str
    final: bool
    requested_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TryRow:
    """How one attempt of the evaluator began."""

    TABLE: ClassVar[str] = "evaluation_tries_state"
    run_id: str
    evaluation_id: str
    evaluation_attempt: int
    version: int
    host: str
    pid: int
    batch_size: int
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """How one attempt of the evaluator failed, and by which budget it goes on."""

    TABLE: ClassVar[str] = "evaluation_failures_state"
    run_id: str
    evaluation_id: str
    evaluation_attempt: int
    version: int
    failure: str
    message: str
    evidence: str
    move: str
    spent: int
    budget: int
    failed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationEndRow:
    """Its verdict, or that it gave up."""

    TABLE: ClassVar[str] = "evaluation_ends_state"
    run_id: str
    evaluation_id: str
    version: int
    phase: str
    verdict: str = ""
    failure: str = ""
    message: str = ""
    tasks: str = "[]"
    gates: str = "[]"
    shards: str = "[]"
    environment_digest: str = ""
    evaluator_version: str = ""
    seconds: float = 0.0
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One aggregate value of one task."""

    TABLE: ClassVar[str] = "evaluation_metrics_state"
    run_id: str
    evaluation_id: str
    task: str
    metric: str
    slice: str
    version: int
    task_version: str
    task_digest: str
    decoding_digest: str
    dataset_digest: str
    split: str
    value: float
    stderr: float | None
    stderr_method: str
    higher_is_better: bool
    primary: bool
    samples: int


def evaluation_rows(fact: e.Fact, spot: Spot) -> Iterator[Row]:
    """Rows of one fact of the evaluations topic."""
    match fact:
        case e.EvaluationRequested():
            yield _request(fact, spot)
        case e.EvaluationStarted():
            yield _try(fact, spot)
        case e.EvaluationFailed():
            yield _failure(fact, spot)
        case e.EvaluationCompleted():
            yield _completed(fact, spot)
            yield from _metrics(fact, spot)
        case e.EvaluationExhausted():
            yield EvaluationEndRow(
                run_id=spot.root,
                evaluation_id=fact.evaluation_id,
                version=spot.sequence,
                phase=e.EvaluationPhase.EXHAUSTED,
                failure=fact.failure,
                message=fact.message,
                ended_at=fact.exhausted_at,
            )


def _request(fact: e.EvaluationRequested, spot: Spot) -> EvaluationRow:
    return EvaluationRow(
        run_id=spot.root,
        evaluation_id=fact.evaluation_id,
        version=spot.sequence,
        project=fact.project,
        model_family=fact.model_family,
        pack=fact.pack.name,
        pack_digest=fact.pack.digest,
        checkpoint=checkpoint_name(fact.checkpoint),
        checkpoint_step=fact.checkpoint.step,
        checkpoint_epoch=fact.checkpoint.epoch,
        checkpoint_digest=fact.checkpoint.manifest_digest,
        final=fact.final,
        requested_at=fact.requested_at,
    )


def _try(fact: e.EvaluationStarted, spot: Spot) -> TryRow:
    return TryRow(
        run_id=spot.root,
        evaluation_id=fact.evaluation_id,
        evaluation_attempt=fact.evaluation_attempt,
        version=spot.sequence,
        host=fact.host,
        pid=fact.pid,
        batch_size=fact.batch_size,
        started_at=fact.started_at,
    )


def _failure(fact: e.EvaluationFailed, spot: Spot) -> FailureRow:
    return FailureRow(
        run_id=spot.root,
        evaluation_id=fact.evaluation_id,
        evaluation_attempt=fact.evaluation_attempt,
        version=spot.sequence,
        failure=fact.failure,
        message=fact.message,
        evidence=fact_json(fact.evidence),
        move=fact.move,
        spent=fact.spent,
        budget=fact.budget,
        failed_at=fact.failed_at,
    )


def _completed(fact: e.EvaluationCompleted, spot: Spot) -> EvaluationEndRow:
    return EvaluationEndRow(
        run_id=spot.root,
        evaluation_id=fact.evaluation_id,
        version=spot.sequence,
        phase=e.EvaluationPhase.COMPLETED,
        verdict=fact.verdict,
        tasks=fact_json(fact.tasks),
        gates=fact_json(fact.gates),
        shards=fact_json(fact.shards),
        environment_digest=fact.environment_digest,
        evaluator_version=fact.evaluator_version,
        seconds=fact.seconds,
        ended_at=fact.completed_at,
    )


def _metrics(fact: e.EvaluationCompleted, spot: Spot) -> Iterator[MetricRow]:
    for task in fact.tasks:
        for metric in task.metrics:
            yield MetricRow(
                run_id=spot.root,
                evaluation_id=fact.evaluation_id,
                task=task.task,
                metric=metric.name,
                slice=metric.slice,
                version=spot.sequence,
                task_version=task.task_version,
                task_digest=task.task_digest,
                decoding_digest=task.decoding_digest,
                dataset_digest=task.dataset_digest,
                split=task.split,
                value=metric.value,
                stderr=metric.stderr,
                stderr_method=metric.stderr_method,
                higher_is_better=metric.higher_is_better,
                primary=metric.primary,
                samples=metric.samples,
            )
