"""``python -m trackway_observer.rebuild --database NAME``: project the whole log anew into another database.

The live projection goes on beside it. Views of the two can be compared; to serve the new one, start the observer
with TRACKWAY_CLICKHOUSE__DATABASE set to it: its ledger goes on where the rebuild stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections.abc import Callable, Iterable

from trackway_common.clickhouse import ClickHouse
from trackway_common.clock import SystemClock
from trackway_common.environment import read_settings
from trackway_common.event_log import EventLog
from trackway_common.fact_reader import Judged
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.object_store import BlobStore, open_store
from trackway_common.settings import ClickHouseSettings
from trackway_common.telemetry import configure_logging

from trackway_observer.projection.lag import ends_of
from trackway_observer.projection.ledger import Ledger
from trackway_observer.projection.migrations import create_database, load_migrations, migrate
from trackway_observer.projection.progress import Progress
from trackway_observer.projection.rows.row import Row
from trackway_observer.projection.rows.samples import EvaluationSamples
from trackway_observer.projection.sources import sources
from trackway_observer.projection.topic_projector import Surroundings, TopicProjector
from trackway_observer.settings import PROJECTOR, ObserverSettings

log = logging.getLogger(__name__)

WITHOUT_LIMIT_S = 365 * 24 * 3600.0


async def rebuild(
    event_log: EventLog,
    settings: ClickHouseSettings,
    *,
    samples: Callable[[Judged], Iterable[Row]] | None = None,
    generation: int = 1,
) -> None:
    """Project everything that is in the log now, then stop.

    Args:
        event_log: the log; only read.
        settings: of the database to fill; it is made when it is not there, and continued when it is.
        samples: rows of evaluations' shards, where the object store is at hand.
        generation: names this rebuild in tokens and ledger; another one starts from zero.
    """
    await create_database(settings)
    database = ClickHouse(settings)
    try:
        await migrate(database, load_migrations())
        await _project(event_log, Ledger(database, PROJECTOR, generation), samples)
    finally:
        await database.close()


async def _project(event_log: EventLog, ledger: Ledger, samples: Callable[[Judged], Iterable[Row]] | None) -> None:
    around = Surroundings(log=event_log, ledger=ledger, dead_letters=None, progress=Progress(), clock=SystemClock())
    projectors = {source.topic: TopicProjector(source, around) for source in sources(samples)}
    ends = await ends_of(event_log, tuple(projectors))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(projector.run()) for projector in projectors.values()]
        await around.progress.reach(ends, WITHOUT_LIMIT_S)
        for task in tasks:
            task.cancel()
    log.info("rebuilt", extra={"records": sum(ends.values())})


async def _main(database: str, generation: int) -> None:
    settings = read_settings(ObserverSettings)
    configure_logging("observer-rebuild", settings.telemetry.log_level)
    event_log = KafkaEventLog(settings.kafka)
    target = settings.clickhouse.model_copy(update={"database": database})
    blobs = BlobStore(open_store(settings.store.url))
    try:
        await rebuild(event_log, target, samples=EvaluationSamples(blobs), generation=generation)
    finally:
        await event_log.close()


def main() -> None:
    """Parse the command line and rebuild."""
    parser = argparse.ArgumentParser(prog="trackway_observer.rebuild", description=__doc__)
    parser.add_argument("--database", required=True, help="to fill; not the live one")
    parser.add_argument("--generation", type=int, default=1)
    arguments = parser.parse_args()
    asyncio.run(_main(arguments.database, arguments.generation))


if __name__ == "__main__":
    main()
