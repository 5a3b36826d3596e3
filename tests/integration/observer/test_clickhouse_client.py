"""The ClickHouse client against a real engine: values, errors, limits, TLS."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from trackway_common.clickhouse import ClickHouse, Overloaded, StatementRefused
from trackway_common.errors import Unavailable

from tests.support.read_model import ReadModelServer


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
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*new, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    plain = server.settings("default")
    async with tls_in_front(plain.url, cert, key) as url:
        trusting = ClickHouse(plain.model_copy(update={"url": url, "ca_file": cert}))
        assert await trusting.rows("select 1") == [(1,)]
        await trusting.close()
        wary = ClickHouse(plain.model_copy(update={"url": url}))
        with pytest.raises(Unavailable):
            await wary.rows("select 1")
        await wary.close()


class tls_in_front:
    """Ends TLS before a plain server, byte by byte."""

    def __init__(self, url: str, cert: Path, key: Path) -> None:
        self._host, _, port = url.removeprefix("http://").partition(":")
        self._port = int(port)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(cert, key)

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0, ssl=self._context)
        return f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(self._host, self._port)
        try:
            await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))
        except ConnectionError:
            pass


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()
