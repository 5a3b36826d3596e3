"""Reads wait for the log's end as it was when they came, and say what is missing."""

from __future__ import annotations

import asyncio

from trackway_common import topics
from trackway_common.clock import SystemClock
from trackway_common.errors import Unavailable
from trackway_common.event_log import InMemoryEventLog
from trackway_observer.history.freshness import EVERYTHING, Freshness
from trackway_observer.projection.progress import Place, Progress


class LogThatGoesAway(InMemoryEventLog):
    is_away = False

    async def end_offsets(self, topic: str) -> dict[int, int]:
        if self.is_away:
            raise Unavailable("away")
        return await super().end_offsets(topic)


async def appended(log: InMemoryEventLog, topic: str, partition: int, records: int) -> None:
    for _ in range(records):
        await log.append(topic, partition, b"k", b"v", ())


async def test_waits_until_the_end_is_reached() -> None:
    log, progress = InMemoryEventLog(), Progress()
    await appended(log, topics.RUNS, 3, 2)
    reading = asyncio.create_task(Freshness(log, progress, SystemClock(), 30.0).catch_up())
    await asyncio.sleep(0)
    await progress.advance(Place(topics.RUNS, 3), 1)
    assert not reading.done()
    await progress.advance(Place(topics.RUNS, 3), 2)
    assert await reading == 0


async def test_says_how_far_it_is_behind_when_time_is_up() -> None:
    log, progress = InMemoryEventLog(), Progress()
    await appended(log, topics.RUNS, 3, 5)
    await appended(log, topics.ATTEMPTS, 0, 2)
    await progress.advance(Place(topics.RUNS, 3), 1)
    assert await Freshness(log, progress, SystemClock(), 0.0).catch_up() == 6


async def test_what_comes_after_the_call_is_not_waited_for() -> None:
    log, progress = InMemoryEventLog(), Progress()
    freshness = Freshness(log, progress, SystemClock(), 30.0)
    assert await freshness.catch_up() == 0
    await appended(log, topics.TELEMETRY, 0, 1)
    assert await freshness.catch_up() == 0, "telemetry is not among the facts"


async def test_telemetry_counts_where_it_is_read() -> None:
    log, progress = InMemoryEventLog(), Progress()
    await appended(log, topics.TELEMETRY, 0, 4)
    assert await Freshness(log, progress, SystemClock(), 0.0).catch_up(EVERYTHING) == 4


async def test_answers_by_what_it_knew_while_the_log_is_away() -> None:
    log, progress = LogThatGoesAway(), Progress()
    freshness = Freshness(log, progress, SystemClock(), 0.0)
    log.is_away = True
    assert await freshness.catch_up() == 0
    log.is_away = False
    await appended(log, topics.RUNS, 0, 3)
    assert await freshness.catch_up() == 3
    log.is_away = True
    await progress.advance(Place(topics.RUNS, 0), 2)
    assert await freshness.catch_up() == 1
