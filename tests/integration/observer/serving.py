"""The history served over gRPC, as callers reach it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager

import grpc.aio
from trackway_common.clickhouse import ClickHouse
from trackway_common.clock import SystemClock
from trackway_common.event_log import InMemoryEventLog
from trackway_common.rpc import serve
from trackway_common.settings import ClickHouseSettings, RpcSettings
from trackway_common.testing.run_facts import append_commits
from trackway_common.testing.run_stories import killed_and_resumed
from trackway_observer.entrypoints.grpc_api import HistoryParts, history_servable
from trackway_observer.history.freshness import Freshness
from trackway_observer.history.people_sql import PeopleSql, SqlLimits
from trackway_observer.projection.migrations import create_database, load_migrations, migrate
from trackway_observer.projection.progress import Place
from trackway_proto.v1.history_service_pb2_grpc import HistoryServiceStub

from tests.integration.observer.projecting import project


def filled_read_model(settings: ClickHouseSettings, log: Coroutine[None, None, InMemoryEventLog]) -> ClickHouseSettings:
    """Make a database and project a log into it, once for all tests that only read it."""

    async def fill() -> None:
        await create_database(settings)
        database = ClickHouse(settings)
        try:
            await migrate(database, load_migrations())
            await project(await log, database)
        finally:
            await database.close()

    asyncio.run(fill())
    return settings


async def resumed_run() -> InMemoryEventLog:
    """A log of one run that was killed, resumed and succeeded."""
    log = InMemoryEventLog()
    await append_commits(log, killed_and_resumed().commits)
    return log


class Reached:
    """A projection that is where a test says."""

    def __init__(self, behind: int = 0) -> None:
        self.behind = behind

    async def reach(self, ends: Mapping[Place, int], timeout_s: float) -> int:
        return self.behind


@asynccontextmanager
async def history(
    database: ClickHouse, *, limits: SqlLimits | None = None, behind: int = 0, ready: bool = True
) -> AsyncIterator[HistoryServiceStub]:
    """Serve one database and open a client."""
    clock, opened = SystemClock(), asyncio.Event()
    if ready:
        opened.set()
    parts = HistoryParts(
        database=database,
        people=PeopleSql(database, limits or SqlLimits()),
        freshness=Freshness(InMemoryEventLog(), Reached(behind), clock, 2.0),
        clock=clock,
        ready=opened,
    )
    server = await serve(RpcSettings(), [history_servable(parts)])
    channel = grpc.aio.insecure_channel(server.address)
    try:
        yield HistoryServiceStub(channel)
    finally:
        await channel.close()
        await server.stop()
