"""Rows of telemetry: what ranks measured, never facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from trackway_common import events as e
from trackway_common.history.wording import time_of_ms

from trackway_observer.projection.rows.row import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMetricRow:
    TABLE: ClassVar[str] = "metrics_state"
    run_id: str
    name: str
    attempt: int
    rank: int
    step: int
    record: int
    epoch: int
    at: datetime
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    TABLE: ClassVar[str] = "logs_state"
    run_id: str
    attempt: int
    rank: int
    record: int
    epoch: int
    at: datetime
    stream: str
    step: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRow:
    TABLE: ClassVar[str] = "resource_samples_state"
    run_id: str
    attempt: int
    rank: int
    record: int
    epoch: int
    at: datetime
    memory_bytes: int
    cpu_percent: float
    device_utilisation: float | None
    device_memory_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRow:
    """A rank's newest sign of life; ``version`` is its time."""

    TABLE: ClassVar[str] = "rank_heartbeats_state"
    run_id: str
    attempt: int
    rank: int
    version: int
    at: datetime
    last_step: int
    dropped_metrics: int
    dropped_logs: int


def telemetry_rows(batch: e.TelemetryBatch) -> Iterator[Row]:
    """Rows of one batch of one rank; keyed by the rank's record numbers, so a batch sent twice counts once."""
    for step in batch.steps:
        yield from _metrics(batch, step)
    for line in batch.logs:
        yield LogRow(
            run_id=batch.run_id,
            attempt=batch.attempt,
            rank=batch.rank,
            record=line.record,
            epoch=batch.epoch,
            at=time_of_ms(line.at_ms),
            stream=line.stream,
            step=line.step,
            text=line.text,
        )
    for sample in batch.samples:
        yield _sample(batch, sample)
    if batch.heartbeat is not None:
        yield _heartbeat(batch, batch.heartbeat)


def _metrics(batch: e.TelemetryBatch, step: e.StepMetrics) -> Iterator[StepMetricRow]:
    for metric in step.values:
        yield StepMetricRow(
            run_id=batch.run_id,
            name=metric.name,
            attempt=batch.attempt,
            rank=batch.rank,
            step=step.step,
            record=step.record,
            epoch=batch.epoch,
            at=time_of_ms(step.at_ms),
            value=metric.value,
        )


def _sample(batch: e.TelemetryBatch, sample: e.ResourceSample) -> SampleRow:
    return SampleRow(
        run_id=batch.run_id,
        attempt=batch.attempt,
        rank=batch.rank,
        record=sample.record,
        epoch=batch.epoch,
        at=time_of_ms(sample.at_ms),
        memory_bytes=sample.memory_bytes,
        cpu_percent=sample.cpu_percent,
        device_utilisation=sample.device_utilisation,
        device_memory_bytes=sample.device_memory_bytes,
    )


def _heartbeat(batch: e.TelemetryBatch, beat: e.RankHeartbeat) -> HeartbeatRow:
    return HeartbeatRow(
        run_id=batch.run_id,
        attempt=batch.attempt,
        rank=batch.rank,
        version=max(0, beat.at_ms),
        at=time_of_ms(beat.at_ms),
        last_step=beat.last_step,
        dropped_metrics=batch.dropped_metrics,
        dropped_logs=batch.dropped_logs,
    )
