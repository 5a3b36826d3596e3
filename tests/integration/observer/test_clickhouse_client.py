"""The ClickHouse client against a real engine: values, errors, limits, TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from trackway_common.clickhouse import ClickHouse, Overloaded, StatementRefused
from trackway_common.errors import Unavailable
from trackway_common.settings import ClickHouseSettings

from tests.support.certificates import Authority
from tests.support.read_model import ReadModelServer
from tests.support.tls_front import tls_in_front


@pytest.fixture
async def client(server: ReadModelServer) -> AsyncIterator[ClickHouse]:
    opened = ClickHouse(server.settings("default"))
    yield opened
    await opened.close()


async def test_values_survive(client: ClickHouse) -> None:
    await client.command("drop table if exists kept")
    await client.command(
        "create table kept (at DateTime64(6, 'UTC'), none Nullable(Float64), raw String, words Array(String), yes Bool)"
        " engine = MergeTree order by at"
    )
    times = [datetime(2026, 11, 20, tzinfo=UTC) + timedelta(microseconds=7919 * i) for i in range(100)]
    data = (times, [None] * 100, [b"\xff\x00"] * 100, [("a", "b")] * 100, [True] * 100)
    await client.insert("kept", ("at", "none", "raw", "words", "yes"), data)
    rows = await client.rows("select at, none, hex(raw), words, yes from kept order by at")
    assert [row[0] for row in rows] == times
    assert list(rows[0][1:]) == [None, "FF00", ["a", "b"], True]


async def test_a_repeat_under_the_same_token_has_no_effect(client: ClickHouse) -> None:
    await client.command("drop table if exists once")
    await client.command(
        "create table once (n UInt64) engine = MergeTree order by n settings non_replicated_deduplication_window = 10"
    )
    for _ in range(3):
        await client.insert("once", ("n",), [[1, 2, 3]], token="range-1")
    await client.insert("once", ("n",), [[1, 2, 3]], token="range-2")
    assert await client.rows("select count() from once") == [(6,)]


async def test_errors_say_who_has_to_act(client: ClickHouse) -> None:
    with pytest.raises(StatementRefused, match="nosuch") as wrong:
        await client.rows("select nosuch")
    assert wrong.value.code == 47
    with pytest.raises(Overloaded):
        await client.rows("select sleep(2)", settings={"max_execution_time": 1})
    with pytest.raises(StatementRefused):
        await client.command("create table forbidden (n UInt8) engine = Memory", settings={"readonly": 1})


async def test_parameters_are_values_and_nothing_else(client: ClickHouse) -> None:
    hostile = "'; drop table once; --"
    assert await client.rows("select {word:String}", {"word": hostile}) == [(hostile,)]


async def test_an_answer_comes_in_pieces(client: ClickHouse) -> None:
    body = client.stream("select number from numbers(50000)", "TabSeparated")
    pieces = [piece async for piece in body]
    assert len(pieces) > 1
    assert b"".join(pieces).splitlines()[-1] == b"49999"


async def test_an_absent_server_is_unavailable_and_found_again(server: ReadModelServer, client: ClickHouse) -> None:
    await client.rows("select 1")
    server.kill()
    with pytest.raises(Unavailable):
        await client.rows("select 1")
    await asyncio.to_thread(server.start)
    assert await client.rows("select 1") == [(1,)]


async def test_tls_is_spoken_and_the_authority_checked(server: ReadModelServer, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    plain = server.settings("default")
    with tls_in_front(plain.url, authority.issue("clickhouse")) as url:
        trusting = ClickHouse(plain.model_copy(update={"url": url, "ca_file": authority.certificate}))
        assert await trusting.rows("select 1") == [(1,)]
        await trusting.close()
        wary = ClickHouse(plain.model_copy(update={"url": url}))
        with pytest.raises(Unavailable, match=r"is not trusted \(.+\); correct TRACKWAY_CLICKHOUSE__CA_FILE"):
            await wary.rows("select 1")
        await wary.close()


async def test_a_wrong_password_names_the_setting() -> None:
    """The local engine takes any, so this answers as a server of ClickHouse's own does."""

    async def refuse(_: web.Request) -> web.Response:
        said = (
            "Code: 516. DB::Exception: grafana: Authentication failed: password is incorrect. (AUTHENTICATION_FAILED)"
        )
        return web.Response(status=403, text=said, headers={"X-ClickHouse-Exception-Code": "516"})

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", refuse)
    async with TestServer(app) as stranger:
        client = ClickHouse(ClickHouseSettings(url=str(stranger.make_url("")), user="grafana"))
        with pytest.raises(StatementRefused, match=r"refuses user 'grafana' .*TRACKWAY_CLICKHOUSE__PASSWORD"):
            await client.rows("select 1")
        await client.close()
