"""The whole projection of one process: database, projectors of every topic, lag."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trackway_common.clickhouse import ClickHouse, StatementRefused
from trackway_common.clock import Clock
from trackway_common.dead_letters import DeadLetters
from trackway_common.errors import Unavailable
from trackway_common.event_log import EventLog
from trackway_common.settings import ClickHouseSettings

from trackway_observer.projection.lag import LagReporter
from trackway_observer.projection.ledger import Ledger
from trackway_observer.projection.migrations import create_database, load_migrations, migrate
from trackway_observer.projection.progress import Progress
from trackway_observer.projection.sources import MoreRows, sources
from trackway_observer.projection.topic_projector import Surroundings, TopicProjector

log = logging.getLogger(__name__)

RETRY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionParts:
    """What the projection works with."""

    event_log: EventLog
    database: ClickHouse
    settings: ClickHouseSettings
    dead_letters: DeadLetters
    progress: Progress
    clock: Clock
    projector: str
    generation: int
    samples: MoreRows | None = None


class Projection:
    """Prepares the database, then projects until cancelled."""

    def __init__(self, parts: ProjectionParts) -> None:
        self._parts = parts
        around = Surroundings(
            log=parts.event_log,
            ledger=Ledger(parts.database, parts.projector, parts.generation),
            dead_letters=parts.dead_letters,
            progress=parts.progress,
            clock=parts.clock,
        )
        self._projectors = tuple(TopicProjector(source, around) for source in sources(parts.samples))
        self.running = asyncio.Event()
        """Set once the database has this build's schema and every topic is being read."""

    async def run(self) -> None:
        """Project for ever; a log or a ClickHouse that is away is waited out.

        Raises:
            SchemaConflict: the database belongs to another build.
            CorruptLog: the log no longer holds facts that were not projected yet.
        """
        await self._patiently(self._prepare)
        reporter = LagReporter(self._parts.event_log, self._parts.database, self._parts.progress, self._parts.projector)
        topics = [projector.topic for projector in self._projectors]
        async with asyncio.TaskGroup() as group:
            for projector in self._projectors:
                group.create_task(self._patiently(projector.run))
            group.create_task(reporter.run(topics, self._parts.clock))
            for projector in self._projectors:
                await projector.running.wait()
            self.running.set()
            log.info("projecting", extra={"database": self._parts.database.database, "topics": len(topics)})

    async def _prepare(self) -> None:
        await create_database(self._parts.settings)
        await migrate(self._parts.database, load_migrations())

    async def _patiently(self, action: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                return await action()
            except (Unavailable, StatementRefused) as error:
                log.warning("projection waits", extra={"error": str(error)})
                await self._parts.clock.sleep(RETRY_S)
