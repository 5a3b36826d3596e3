"""The observer as a process: projection, history, watch, heartbeat."""

from __future__ import annotations

import asyncio
import logging

from trackway_common.clickhouse import ClickHouse
from trackway_common.clock import SystemClock
from trackway_common.dead_letters import DeadLetters
from trackway_common.event_log import EventLog
from trackway_common.ids import uuid7
from trackway_common.object_store import BlobStore, open_store
from trackway_common.request_sender import RequestSender
from trackway_common.rpc import RpcServer, serve
from trackway_common.service import beat

from trackway_observer.entrypoints.grpc_api import HistoryParts, history_servable
from trackway_observer.history.freshness import Freshness
from trackway_observer.history.people_sql import PeopleSql, SqlLimits
from trackway_observer.projection.progress import Progress
from trackway_observer.projection.projection import Projection, ProjectionParts
from trackway_observer.projection.rows.samples import EvaluationSamples
from trackway_observer.settings import PROJECTOR, ObserverSettings
from trackway_observer.watch.process import keep_watch_running

log = logging.getLogger(__name__)

SERVICE = "observer"
READ_THREADS = 8


async def run_observer(settings: ObserverSettings, event_log: EventLog) -> None:
    """Project and serve until cancelled.

    Raises:
        Unavailable: the address can't be bound.
        SchemaConflict: the database belongs to another build.
        CorruptLog: the log no longer holds facts that were not projected yet.
    """
    clock, progress = SystemClock(), Progress()
    # Apart, so that a slow reader never holds up the projection.
    written = ClickHouse(settings.clickhouse)
    read = ClickHouse(settings.clickhouse, threads=READ_THREADS)
    blobs = BlobStore(open_store(settings.store.url))
    limits = SqlLimits(seconds=settings.history.query_s, memory_bytes=settings.history.query_memory_bytes)
    projection = Projection(
        ProjectionParts(
            event_log=event_log,
            database=written,
            settings=settings.clickhouse,
            dead_letters=DeadLetters(event_log, SERVICE),
            progress=progress,
            clock=clock,
            projector=PROJECTOR,
            generation=settings.generation,
            samples=EvaluationSamples(blobs),
        )
    )
    history = HistoryParts(
        database=read,
        people=PeopleSql(read, limits),
        freshness=Freshness(event_log, progress, clock, settings.history.fresh_s),
        clock=clock,
        blob=blobs.get,
        ready=projection.running,
    )
    server = await serve(settings.rpc, [history_servable(history)])
    instance = settings.instance or uuid7()
    sender = RequestSender(event_log, f"{SERVICE}/{instance}", clock, uuid7)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(projection.run())
            group.create_task(_open(projection, server))
            group.create_task(keep_watch_running(clock))
            group.create_task(beat(sender, clock, SERVICE, instance, server.address))
    finally:
        await server.stop()
        await read.close()
        await written.close()


async def _open(projection: Projection, server: RpcServer) -> None:
    await projection.running.wait()
    await server.set_serving(True)
    log.info("serving", extra={"address": server.address})
