"""Telemetry on its way: batched, bounded, never in a hurry."""

from __future__ import annotations

import asyncio

import pytest
from trackway_common.clock import ManualClock
from trackway_common.codec import decode_telemetry
from trackway_common.errors import Unavailable
from trackway_common.event_log import InMemoryEventLog
from trackway_common.events import LogLine, MetricValue, RankHeartbeat, ResourceSample, StepMetrics, TelemetryBatch
from trackway_common.topics import TELEMETRY
from trackway_trainer_agent.shell import telemetry_outbox
from trackway_trainer_agent.shell.telemetry_outbox import TelemetryOutbox


@pytest.fixture
def log() -> InMemoryEventLog:
    return InMemoryEventLog()


@pytest.fixture
def outbox(log: InMemoryEventLog) -> TelemetryOutbox:
    return TelemetryOutbox(log, run_id="r", attempt=2, epoch=3, clock=ManualClock())


def sent(log: InMemoryEventLog) -> list[TelemetryBatch]:
    return [decode_telemetry(record.value) for record in log.records(TELEMETRY)]


def printed(record: int, text: str = "x") -> LogLine:
    return LogLine(record=record, text=text)


async def test_a_flush_sends_one_batch_a_rank(log: InMemoryEventLog, outbox: TelemetryOutbox) -> None:
    step = StepMetrics(record=1, step=4, values=(MetricValue(name="loss", value=1.0),))
    outbox.add(0, step)
    outbox.add(0, printed(2))
    outbox.add(1, ResourceSample(record=1, memory_bytes=9))
    outbox.beat(0, RankHeartbeat(at_ms=5, last_step=4), dropped_metrics=7, dropped_logs=8)
    await outbox.flush()
    first, second = sent(log)
    assert (first.rank, first.steps, first.logs, first.heartbeat) == (
        0,
        (step,),
        (printed(2),),
        RankHeartbeat(at_ms=5, last_step=4),
    )
    assert (first.dropped_metrics, first.dropped_logs) == (7, 8)
    assert (second.rank, second.samples[0].memory_bytes, second.heartbeat) == (1, 9, None)
    assert {(b.run_id, b.attempt, b.epoch) for b in (first, second)} == {("r", 2, 3)}
    assert {record.key for record in log.records(TELEMETRY)} == {b"r"}
    await outbox.flush()
    assert len(sent(log)) == 2


async def test_much_is_sent_in_pieces(log: InMemoryEventLog, outbox: TelemetryOutbox, monkeypatch) -> None:
    monkeypatch.setattr(telemetry_outbox, "BATCH_BYTES", 1_000)
    for record in range(1, 101):
        outbox.add(0, printed(record, "y" * 100))
    outbox.add(0, printed(101, "z" * 5_000))
    await outbox.flush()
    assert [item.record for batch in sent(log) for item in batch.logs] == list(range(1, 102))
    assert max(len(record.value) for record in log.records(TELEMETRY)) < 5_500
    assert len(sent(log)) > 10


async def test_what_was_not_acknowledged_is_sent_again(
    log: InMemoryEventLog, outbox: TelemetryOutbox, monkeypatch
) -> None:
    append = log.append

    async def away(*arguments: object) -> int:
        raise Unavailable("away")

    outbox.add(0, printed(1))
    monkeypatch.setattr(log, "append", away)
    with pytest.raises(Unavailable):
        await outbox.flush()
    outbox.add(0, printed(2))
    monkeypatch.setattr(log, "append", append)
    await asyncio.gather(outbox.flush(), outbox.flush())
    assert [[item.record for item in batch.logs] for batch in sent(log)] == [[1, 2]]


async def test_when_it_is_full_ranks_keep_their_records(
    log: InMemoryEventLog, outbox: TelemetryOutbox, monkeypatch
) -> None:
    monkeypatch.setattr(telemetry_outbox, "MAX_WAITING_BYTES", 1_000)
    await outbox.room()
    for record in range(1, 21):
        outbox.add(0, printed(record))
    waiting = asyncio.create_task(outbox.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    await outbox.flush()
    await waiting
