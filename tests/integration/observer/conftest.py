"""One ClickHouse for all tests of the observer; each test has a database of its own."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator

import pytest
from trackway_common.clickhouse import ClickHouse
from trackway_observer.projection.migrations import create_database, load_migrations, migrate

from tests.support.read_model import ReadModelServer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReadModelServer]:
    running = ReadModelServer(tmp_path_factory.mktemp("clickhouse"))
    running.start()
    yield running
    running.stop()


@pytest.fixture
async def database(server: ReadModelServer) -> AsyncIterator[ClickHouse]:
    """An empty read model."""
    settings = server.settings(f"t{uuid.uuid4().hex}")
    await create_database(settings)
    opened = ClickHouse(settings)
    await migrate(opened, load_migrations())
    yield opened
    await opened.command(f"drop database {settings.database}")
    await opened.close()
