"""Death between any two effects: afterwards every view equals one that was projected in peace."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator

import pytest
from trackway_common import topics
from trackway_common.clickhouse import ClickHouse
from trackway_common.codec import encode_measurement
from trackway_common.event_log import InMemoryEventLog
from trackway_common.events import LogLine, MetricValue, Signal, SignalKind, StepMetrics, TelemetryBatch
from trackway_common.partitioner import partition_of
from trackway_common.testing.run_facts import RUN_ID, append_commits
from trackway_common.testing.run_stories import killed_and_resumed
from trackway_observer.projection.compare import compare_projections
from trackway_observer.projection.migrations import create_database, load_migrations, migrate

from tests.integration.observer.projecting import Died, project
from tests.support.read_model import ReadModelServer

OTHER_RUN = "0199f3a1-7c2e-7d44-9b1a-3f6c2e8a9d02"
COUNTER = (
    "create table fact_counts (fact String, facts UInt64) engine = SummingMergeTree order by fact"
    " settings non_replicated_deduplication_window = 10000",
    "create materialized view fact_counter to fact_counts as"
    " select fact, count() as facts from events_state group by fact",
)
"""An additive table, which a range inserted twice would spoil for ever."""


class DeathAt:
    """Ends the process at the n-th crash point."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, _: str) -> None:
        self._left -= 1
        if self._left == 0:
            raise Died


class Heard(logging.Handler):
    """Tells when something was logged in this thread."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message
        self.heard = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == self._message:
            self.heard.set()


@pytest.fixture
async def log() -> InMemoryEventLog:
    """Two runs with their measurements, and poison in each topic."""
    log = InMemoryEventLog()
    for run_id in (RUN_ID, OTHER_RUN):
        await append_commits(log, killed_and_resumed(run_id).commits, run_id=run_id)
        for step in range(1, 4):
            await log.append(topics.TELEMETRY, partition_of(run_id.encode(), 12), b"k", measured(run_id, step), ())
    signal = Signal(signal_id="s1", kind=SignalKind.NO_HEARTBEAT, run_id=RUN_ID, attempt=1, quiet_seconds=12.0)
    await log.append(topics.SIGNALS, 0, b"k", encode_measurement(signal), ())
    for topic in (*topics.FACT_TOPICS, topics.TELEMETRY, topics.SIGNALS, topics.COMMANDS):
        await log.append(topic, 0, b"k", b"\xff garbage", ())
    return log


@pytest.fixture
async def peaceful(server: ReadModelServer, log: InMemoryEventLog) -> AsyncIterator[ClickHouse]:
    """A projection of the log by a process that nothing happened to."""
    database = await opened(server)
    await project(log, database)
    await project(log, database)  # what it buried itself is in the log now, too
    yield database
    await database.close()


@pytest.mark.parametrize("first", [1, 2, 3])
async def test_views_are_equal_after_deaths_between_any_two_effects(
    first: int, server: ReadModelServer, log: InMemoryEventLog, peaceful: ClickHouse
) -> None:
    database = await opened(server)
    deaths = 0
    for number in range(first, 200, 3):
        death = DeathAt(number)
        try:
            await project(log, database, crashpoint=death)
        except Died:
            deaths += 1
        else:
            break
    await project(log, database)
    assert deaths >= 5
    assert await compare_projections(database, peaceful.database) == ()
    await no_fact_twice(database)
    await database.close()


async def test_each_range_counts_once_when_the_engine_dies_too(
    server: ReadModelServer, log: InMemoryEventLog, peaceful: ClickHouse
) -> None:
    database = await opened(server)

    def kill_engine(name: str) -> None:
        if name == "after_events_state":
            server.kill()
            server.start()
            raise Died

    with pytest.raises(Died):
        await project(log, database, crashpoint=kill_engine)
    await project(log, database)
    assert await compare_projections(database, peaceful.database) == ()
    await no_fact_twice(database)
    await database.close()


async def test_an_absent_engine_is_waited_for_and_nothing_is_lost(
    server: ReadModelServer,
    log: InMemoryEventLog,
    peaceful: ClickHouse,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = await opened(server)
    server.kill()
    waits = Heard("projection waits")
    projector = logging.getLogger("trackway_observer.projection.topic_projector")
    caplog.set_level(logging.INFO, projector.name)
    monkeypatch.setattr(projector, "handlers", [waits])
    projecting = asyncio.create_task(project(log, database))
    await waits.heard.wait()
    assert not projecting.done()
    await asyncio.to_thread(server.start)
    await projecting
    assert await compare_projections(database, peaceful.database) == ()
    await database.close()


async def test_poison_is_buried_with_its_origin_and_stops_nobody(log: InMemoryEventLog, peaceful: ClickHouse) -> None:
    rows = await peaceful.rows("select distinct original_topic, original_partition, reader, payload from dead_letters")
    poisoned = {*topics.FACT_TOPICS, topics.TELEMETRY, topics.SIGNALS, topics.COMMANDS}
    assert {row[0] for row in rows} == poisoned
    assert {(row[1], row[2]) for row in rows} == {(0, "observer")}
    assert await peaceful.rows("select count() from training_runs where phase = 'SUCCEEDED'") == [(2,)]


async def test_another_generation_projects_the_whole_log_again(
    server: ReadModelServer, log: InMemoryEventLog, peaceful: ClickHouse
) -> None:
    again = await opened(server)
    await project(log, again, generation=2, bury=False)
    assert await compare_projections(again, peaceful.database) == ()
    await again.close()


async def test_differences_are_named_with_rows(
    server: ReadModelServer, log: InMemoryEventLog, peaceful: ClickHouse
) -> None:
    other = await opened(server)
    await project(log, other, bury=False)
    await other.command("alter table retry_decisions_state delete where attempt = 1 settings mutations_sync = 1")
    [difference] = [d for d in await compare_projections(peaceful, other.database) if d.view == "retry_decisions"]
    assert (difference.rows, difference.other_rows) == (4, 2)
    assert len(difference.only_here) == 2
    assert difference.only_there == ()
    await other.close()


async def no_fact_twice(database: ClickHouse) -> None:
    """Without FINAL and through an additive view: no row of any range was inserted twice."""
    [(rows, keys)] = await database.rows(
        "select count(), uniqExact(topic, kafka_partition, kafka_offset, event_index) from events_state"
    )
    assert rows == keys
    counted = await database.rows("select fact, sum(facts) from fact_counts group by fact order by fact")
    assert counted == await database.rows("select fact, count() from events group by fact order by fact")
    assert sum(row[1] for row in counted) == rows


async def opened(server: ReadModelServer) -> ClickHouse:
    settings = server.settings(f"t{uuid.uuid4().hex}")
    await create_database(settings)
    database = ClickHouse(settings)
    await migrate(database, load_migrations())
    for statement in COUNTER:
        await database.command(statement)
    return database


def measured(run_id: str, step: int) -> bytes:
    values = (MetricValue(name="loss", value=3.0 / step),)
    batch = TelemetryBatch(
        run_id=run_id,
        attempt=1,
        epoch=1,
        steps=(StepMetrics(record=step, step=step, at_ms=1_000 * step, values=values),),
        logs=(LogLine(record=100 + step, at_ms=1_000 * step, stream="stdout", text=f"step {step}"),),
    )
    return encode_measurement(batch)
