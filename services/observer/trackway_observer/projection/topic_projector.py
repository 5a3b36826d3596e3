"""Projects one topic: range by range, each once in effect, whatever dies when."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from trackway_common import topics
from trackway_common.clickhouse import StatementRefused
from trackway_common.clock import Clock
from trackway_common.dead_letters import DeadLetters
from trackway_common.errors import Unavailable
from trackway_common.event_log import EventLog, Record

from trackway_observer.projection.columns import TableColumns, by_table
from trackway_observer.projection.heads import head_columns
from trackway_observer.projection.ledger import Ledger, OffsetRange, TopicProgress
from trackway_observer.projection.progress import Place, Progress
from trackway_observer.projection.ranges import RangeCutter, range_of
from trackway_observer.projection.sources import Reading, Source

log = logging.getLogger(__name__)

FIRST_WAIT_S, LONGEST_WAIT_S = 0.2, 5.0
LINGER_S: Mapping[str, float] = {topics.TELEMETRY: 0.5, topics.COMMANDS: 2.0}
"""Pause after an insert of what comes steadily, so that few large parts are made; facts don't wait."""

T = TypeVar("T")
Crashpoint = Callable[[str], None]
"""Called with the name of each point between two effects; a test may raise there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all projectors of a process share."""

    log: EventLog
    ledger: Ledger
    dead_letters: DeadLetters | None
    """None: poison is passed over in silence, as a rebuild does whose live projector buried it."""
    progress: Progress
    clock: Clock
    crashpoint: Crashpoint = field(default=lambda _: None)


class TopicProjector:
    """Owns the projection of one topic; only one may run per projector name and generation."""

    def __init__(self, source: Source, around: Surroundings) -> None:
        self.topic = source.topic
        self._source = source
        self._around = around
        self.running = asyncio.Event()
        """Set once it has taken up where the ledger says, and reads."""

    async def run(self) -> None:
        """Project for ever. Waits out a log or a ClickHouse that is away, and loses nothing meanwhile.

        Raises:
            CorruptLog: the log no longer holds facts that were not projected yet.
        """
        begun = await self._waiting(lambda: self._around.ledger.progress(self.topic))
        positions = await self._positions(begun)
        await self._waiting(lambda: self._source.load(self._around.ledger, positions))
        cutters = {partition: RangeCutter(_to_replay(begun, partition, at)) for partition, at in positions.items()}
        self.running.set()
        async for batch in self._around.log.tail(self.topic, positions):
            await self._project_batch(batch, cutters)
            if batch and (linger_s := LINGER_S.get(self.topic)):
                await self._around.clock.sleep(linger_s)

    async def _positions(self, begun: TopicProgress) -> dict[int, int]:
        """Where to read on: where the ledger says, or where a log of limited retention begins by now."""
        topic = self.topic
        begins = await self._waiting(lambda: self._around.log.begin_offsets(topic))
        positions: dict[int, int] = {}
        for partition, oldest in begins.items():
            position = begun.positions.get(partition, oldest)
            if position < oldest and topic not in topics.FACT_TOPICS:
                log.warning(
                    "records forgotten before they were projected",
                    extra={"topic": topic, "partition": partition, "records": oldest - position},
                )
                position = oldest
            positions[partition] = position
            await self._around.progress.advance(Place(topic, partition), position)
        return positions

    async def _project_batch(self, batch: Sequence[Record], cutters: Mapping[int, RangeCutter]) -> None:
        partitions: dict[int, list[Record]] = {}
        for record in batch:
            partitions.setdefault(record.partition, []).append(record)
        for partition, records in partitions.items():
            for records_of_range in cutters[partition].cut(records):
                await self._project(records_of_range)

    async def _project(self, records: Sequence[Record]) -> None:
        # In a thread: a thousand records are half a second of Python, and heartbeats and calls go on meanwhile.
        reading = await asyncio.to_thread(self._source.read, records)
        if self._around.dead_letters is not None:
            for poison in reading.poison:
                await self._around.dead_letters.bury(poison.record, poison.why)
        tables = await self._waiting(lambda: asyncio.to_thread(self._tables, reading))
        await self._insert(records, tables)
        last = records[-1]
        place = Place(last.topic, last.partition)
        await self._around.progress.advance(place, last.offset + 1, last.appended_at)

    def _tables(self, reading: Reading) -> tuple[TableColumns, ...]:
        tables = by_table(reading.rows())
        if not reading.heads:
            return tables
        ledger = self._around.ledger
        return (*tables, head_columns(ledger.projector, ledger.generation, self.topic, reading.heads))

    async def _insert(self, records: Sequence[Record], tables: Sequence[TableColumns]) -> None:
        ledger, crashpoint, range_ = self._around.ledger, self._around.crashpoint, range_of(records)
        crashpoint("before_pending")
        if tables:
            await self._waiting(lambda: ledger.begin(range_))
            crashpoint("after_pending")
        for columns in tables:
            await self._waiting(lambda columns=columns: ledger.insert(range_, columns))  # type: ignore[misc]  # bound now
            crashpoint(f"after_{columns.table}")
        await self._waiting(lambda: ledger.finish(range_))
        crashpoint("after_done")

    async def _waiting(self, step: Callable[[], Awaitable[T]]) -> T:
        """Repeat a step until it succeeds: each of them may be repeated without effect."""
        wait_s = FIRST_WAIT_S
        while True:
            try:
                return await step()
            except Unavailable as error:
                log.info("projection waits", extra={"topic": self.topic, "error": str(error)})
            except StatementRefused as error:
                # Never by bad records, which can't make bad rows: a schema that was changed by hand, a missing right.
                log.error("projection stands", extra={"topic": self.topic, "error": str(error)})
                wait_s = LONGEST_WAIT_S
            await self._around.clock.sleep(wait_s)
            wait_s = min(2 * wait_s, LONGEST_WAIT_S)


def _to_replay(begun: TopicProgress, partition: int, position: int) -> OffsetRange | None:
    """The interrupted range, unless the log has forgotten its beginning."""
    pending = begun.pending.get(partition)
    return pending if pending is not None and pending.first == position else None
