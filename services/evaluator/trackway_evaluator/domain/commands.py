"""Orders to the evaluator. Clocks, ids and what processes did arrive in here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from trackway_common.evaluation_pack import Gate
from trackway_common.events import (
    CheckpointRef,
    EvaluationFailure,
    EvaluationPackRef,
    Evidence,
    SampleShard,
    TaskResult,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEvaluation:
    """Evaluate a checkpoint with a pack, as the run ordered for the n-th time."""

    evaluation_id: str
    round: int
    pack: EvaluationPackRef
    checkpoint: CheckpointRef
    project: str
    model_family: str
    final: bool
    requested_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAttempt:
    """A process for the next try is there."""

    evaluation_id: str
    attempt: int
    host: str
    pid: int
    batch_size: int
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFailure:
    """The try ended without a result, or could not even start."""

    evaluation_id: str
    attempt: int
    failure: EvaluationFailure
    message: str
    evidence: tuple[Evidence, ...]
    failed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CompleteEvaluation:
    """The try ended with a result."""

    evaluation_id: str
    attempt: int
    tasks: tuple[TaskResult, ...]
    shards: tuple[SampleShard, ...]
    gates: tuple[Gate, ...]
    environment_digest: str
    evaluator_version: str
    completed_at: datetime
    seconds: float


Command: TypeAlias = RequestEvaluation | StartAttempt | RecordFailure | CompleteEvaluation
