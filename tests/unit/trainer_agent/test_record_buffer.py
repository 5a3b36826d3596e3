"""The buffer never loses a fact, and thins telemetry instead of growing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from trackway_trainer_agent.worker.record_buffer import RecordBuffer
from trackway_trainer_agent.worker.records import FirstStepReported, LogLine, Numbered, StepMetrics


@pytest.fixture
def buffer(tmp_path: Path) -> Iterator[RecordBuffer]:
    opened = RecordBuffer(tmp_path / "records", max_metrics=100, max_logs=40)
    yield opened
    opened.close()


def metric(step: int) -> StepMetrics:
    return StepMetrics(step=step, values=(("loss", 1 / (step + 1)),), at_ms=step)


def line(number: int) -> LogLine:
    return LogLine(stream="stdout", text=str(number), step=0, at_ms=number)


def fact(step: int) -> FirstStepReported:
    return FirstStepReported(step=step, at_ms=step)


def metrics_of(records: tuple[Numbered, ...]) -> list[int]:
    return [item.record.step for item in records if isinstance(item.record, StepMetrics)]


def test_records_come_in_order_behind_the_cursor(buffer: RecordBuffer) -> None:
    for step in range(5):
        buffer.append(metric(step))
    first = buffer.read(0, 2)
    assert metrics_of(first) == [0, 1]
    assert metrics_of(buffer.read(first[-1].number, 10)) == [2, 3, 4]


def test_same_question_gives_the_same_answer(buffer: RecordBuffer) -> None:
    for step in range(5):
        buffer.append(metric(step))
    assert buffer.read(2, 10) == buffer.read(2, 10)


def test_facts_can_be_read_again_from_the_beginning_telemetry_once(buffer: RecordBuffer) -> None:
    buffer.append(fact(1))
    buffer.append(metric(1))
    buffer.append(fact(2))
    assert len(buffer.read(0, 10)) == 3
    buffer.read(3, 10)
    assert [item.record for item in buffer.read(0, 10)] == [fact(1), fact(2)]


def test_full_buffer_thins_metrics_evenly_counts_them_and_keeps_facts(buffer: RecordBuffer) -> None:
    for step in range(1000):
        buffer.append(metric(step))
        if step % 10 == 0:
            buffer.append(fact(step))
    records = buffer.read(0, 10_000)
    kept = metrics_of(records)
    assert len(kept) <= 100
    assert len(kept) + buffer.dropped.metrics == 1000
    assert sum(isinstance(item.record, FirstStepReported) for item in records) == 100
    assert min(kept) < 200 < 800 < max(kept)


def test_full_buffer_drops_the_oldest_lines(buffer: RecordBuffer) -> None:
    for number in range(200):
        buffer.append(line(number))
    kept = [int(item.record.text) for item in buffer.read(0, 1000) if isinstance(item.record, LogLine)]
    assert kept == list(range(200 - len(kept), 200))
    assert len(kept) <= 40
    assert len(kept) + buffer.dropped.logs == 200


def test_what_was_read_is_no_longer_counted_against_the_limit(buffer: RecordBuffer) -> None:
    for step in range(1000):
        buffer.append(metric(step))
        buffer.read(buffer.newest, 1)
    assert buffer.dropped.metrics == 0
