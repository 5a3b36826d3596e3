"""Hostile SQL on a real engine: it reaches nothing that it must not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from trackway_common.clickhouse import ClickHouse
from trackway_common.errors import CommandRejected, TrackwayError
from trackway_common.settings import ClickHouseSettings
from trackway_observer.history.people_sql import PeopleSql, SqlLimits
from trackway_observer.history.sql import guard

from tests.integration.observer.serving import filled_read_model, resumed_run
from tests.support.hostile_sql import SqlWriter
from tests.support.read_model import ReadModelServer

CANARY = "canary-5e1f"
FORBIDDEN = ("private.users", "secrets_state")


@pytest.fixture(scope="module")
def settings(server: ReadModelServer) -> ClickHouseSettings:
    return filled_read_model(server.settings("hostile"), resumed_run())


@pytest.fixture
async def database(settings: ClickHouseSettings) -> AsyncIterator[ClickHouse]:
    opened = ClickHouse(settings)
    yield opened
    await opened.close()


@pytest.fixture
async def secrets(database: ClickHouse, tmp_path: Path) -> Path:
    """A file and two tables that nobody may read."""
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    await database.command("create database if not exists private")
    for table in FORBIDDEN:
        await database.command(f"create or replace table {table} (x String) engine = MergeTree order by x")
        await database.command(f"insert into {table} values ('{CANARY}')")
    return secret


async def test_hostile_statements_reach_nothing(database: ClickHouse, secrets: Path) -> None:
    """Thousands of statements are drawn; those that pass run, and what they must not see never shows."""
    calls = (f"file('{secrets}')", f"file('{secrets}', 'LineAsString')", "throwIf(1)", "merge('private', '.*')")
    writer = SqlWriter(20261121, names=FORBIDDEN, calls=calls)
    passed = [sql for sql in (writer.statement() for _ in range(2_000)) if _passes(sql)]
    assert len(passed) > 100, "the draw must not be refused as a whole"
    people, places = PeopleSql(database, SqlLimits(seconds=5)), asyncio.Semaphore(4)

    async def reached_by(sql: str) -> str:
        async with places:
            return await _answer(people, sql) + await _tables_read(database, guard(sql))

    reached = await asyncio.gather(*(reached_by(sql) for sql in passed))
    for sql, seen in zip(passed, reached, strict=True):
        assert CANARY not in seen, sql
        assert "FUNCTION_THROW_IF" not in seen, sql
        assert not any(f"table_name: {name}" in seen for name in ("private.users", "hostile.secrets_state")), sql


async def test_the_engine_s_own_reading_shows_what_a_statement_reads(database: ClickHouse, secrets: Path) -> None:
    assert "table_name: hostile.secrets_state" in await _tables_read(database, "select 1 in secrets_state")
    assert "table_name: private.users" in await _tables_read(database, "select 1 from events, private.users")
    assert CANARY in str(await database.rows(f"select file('{secrets}')"))


async def _answer(people: PeopleSql, sql: str) -> str:
    try:
        return "".join([row async for page in people.run(sql, 50) for row in page.rows_json])
    except TrackwayError as error:
        return str(error)


async def _tables_read(database: ClickHouse, sql: str) -> str:
    """The engine's own tree of a statement; empty where it refuses it."""
    try:
        return "\n".join(str(row[0]) for row in await database.rows(f"explain query tree {sql}"))
    except TrackwayError:
        return ""


def _passes(sql: str) -> bool:
    try:
        guard(sql)
    except CommandRejected:
        return False
    return True
