"""Project an in-memory log as the observer does, with a death at any point."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from trackway_common.clickhouse import ClickHouse
from trackway_common.clock import SystemClock
from trackway_common.dead_letters import DeadLetters
from trackway_common.event_log import EventLog
from trackway_observer.projection.lag import ends_of
from trackway_observer.projection.ledger import Ledger
from trackway_observer.projection.progress import Progress
from trackway_observer.projection.sources import MoreRows, sources
from trackway_observer.projection.topic_projector import Surroundings, TopicProjector

from tests.support.tasks import cancel

REACHES_S = 60.0


class Died(Exception):
    """The projector's process ended here."""


async def project(
    log: EventLog,
    database: ClickHouse,
    *,
    generation: int = 1,
    samples: MoreRows | None = None,
    bury: bool = True,
    crashpoint: Callable[[str], None] = lambda _: None,
) -> None:
    """Project to the log's end as it is now, as a process that then ends.

    Raises:
        Died: a crash point raised it.
    """
    around = Surroundings(
        log=log,
        ledger=Ledger(database, "trackway", generation),
        dead_letters=DeadLetters(log, "observer") if bury else None,
        progress=Progress(),
        clock=SystemClock(),
        crashpoint=crashpoint,
    )
    projectors = {source.topic: TopicProjector(source, around) for source in sources(samples)}
    ends = await ends_of(log, tuple(projectors))
    tasks = [asyncio.create_task(projector.run()) for projector in projectors.values()]
    reached = asyncio.create_task(around.progress.reach(ends, REACHES_S))
    await asyncio.wait([reached, *tasks], return_when=asyncio.FIRST_COMPLETED)
    await cancel(reached, *tasks)
    assert reached.result() == 0, "the log's end was not reached"
