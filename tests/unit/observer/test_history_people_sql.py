"""Rows on their way to a person: limits, pages, exact numbers, errors in plain words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.clickhouse import Overloaded, Settings, StatementRefused
from trackway_common.errors import CommandRejected, Unavailable
from trackway_observer.history.json_rows import exact_value, lines, row_json
from trackway_observer.history.people_sql import PAGE_BYTES, PeopleSql, RowPage, SqlLimits

HEADER = b'["n"]\n["UInt64"]\n'


@dataclass
class FakeDatabase:
    """Answers every statement with the same bytes, or fails."""

    chunks: Sequence[bytes] = (HEADER, b"[1]\n[2]\n[3]\n")
    error: Exception | None = None
    statements: list[str] = field(default_factory=list)
    settings: dict[str, str | int] = field(default_factory=dict)
    closed: int = 0
    gate: asyncio.Event | None = None
    entered: asyncio.Event = field(default_factory=asyncio.Event)

    async def stream(self, query: str, fmt: str, *, settings: Settings | None = None) -> AsyncGenerator[bytes]:
        assert fmt == "JSONCompactEachRowWithNamesAndTypes"
        self.statements.append(query)
        self.settings = dict(settings or {})
        self.entered.set()
        try:
            if self.gate:
                await self.gate.wait()
            if self.error:
                raise self.error
            for chunk in self.chunks:
                yield chunk
        finally:
            self.closed += 1


async def asked(database: FakeDatabase, sql: str = "select 1", max_rows: int = 0) -> list[RowPage]:
    return [page async for page in PeopleSql(database, SqlLimits()).run(sql, max_rows)]


async def test_rows_come_with_columns_and_types_on_the_first_page() -> None:
    assert await asked(FakeDatabase()) == [
        RowPage(columns=("n",), types=("UInt64",), rows_json=("[1]", "[2]", "[3]"), truncated=False)
    ]


async def test_no_rows_still_say_their_columns() -> None:
    assert await asked(FakeDatabase(chunks=(HEADER,))) == [RowPage(columns=("n",), types=("UInt64",))]


async def test_one_row_more_than_asked_for_says_that_there_are_more() -> None:
    database = FakeDatabase()
    [page] = await asked(database, max_rows=2)
    assert (page.rows_json, page.truncated) == (("[1]", "[2]"), True)
    assert database.settings["limit"] == 3
    [page] = await asked(database, max_rows=3)
    assert (page.rows_json, page.truncated) == (("[1]", "[2]", "[3]"), False)


@pytest.mark.parametrize(("asked_for", "limit"), [(0, 1_001), (10_000, 10_001), (50_000, 10_001)])
async def test_row_limits(asked_for: int, limit: int) -> None:
    database = FakeDatabase()
    await asked(database, max_rows=asked_for)
    assert database.settings["limit"] == limit


async def test_negative_row_count_is_refused() -> None:
    with pytest.raises(CommandRejected, match="max_rows is -1"):
        await asked(FakeDatabase(), max_rows=-1)


async def test_long_answers_come_in_pages() -> None:
    row = b'["' + b"x" * 999 + b'"]\n'
    pages = await asked(FakeDatabase(chunks=(HEADER, row * 700)))
    assert [len(page.columns) for page in pages] == [1, *[0] * (len(pages) - 1)]
    assert sum(len(page.rows_json) for page in pages) == 700
    assert all(sum(map(len, page.rows_json)) < PAGE_BYTES + 2_000 for page in pages)
    assert len(pages) == 3


async def test_a_row_that_no_message_holds_is_refused() -> None:
    with pytest.raises(CommandRejected, match="one row is larger than 4 MiB"):
        await asked(FakeDatabase(chunks=(HEADER, *[b"x" * (1 << 20)] * 5)))


async def test_readonly_is_set_last() -> None:
    database = FakeDatabase()
    await asked(database, "select 1 -- mine\n;")
    assert list(database.settings)[-1] == "readonly"
    assert database.settings["readonly"] == 1
    assert database.settings["max_execution_time"] == 10
    assert database.settings["max_memory_usage"] == 1 << 30
    assert database.statements == ["select 1"]


async def test_what_the_guard_refuses_never_reaches_the_database() -> None:
    database = FakeDatabase()
    with pytest.raises(CommandRejected, match="begins with drop"):
        await asked(database, "drop table events_state")
    assert database.statements == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (StatementRefused("Limit for rows exceeded. (TOO_MANY_ROWS)", 158), "it reads too many rows; narrow it"),
        (Overloaded("Timeout exceeded", 159), "it takes longer than 10 s; narrow it by run_id"),
        (Overloaded("Memory limit exceeded", 241), "it needs more than 1024 MiB of memory"),
        (StatementRefused("Unknown identifier `rnid`. (UNKNOWN_IDENTIFIER)", 47), "Unknown identifier `rnid`"),
    ],
)
async def test_errors_say_what_to_write_instead(error: Exception, said: str) -> None:
    database = FakeDatabase(error=error)
    with pytest.raises(CommandRejected) as refusal:
        await asked(database)
    assert said in refusal.value.message
    assert database.closed == 1


async def test_a_parser_s_long_list_of_tokens_is_cut() -> None:
    long = "Syntax error: failed at position 9 (x): x\n FORMAT Y. Expected one of: token, Dot, alias (SYNTAX_ERROR)"
    with pytest.raises(CommandRejected) as refusal:
        await asked(FakeDatabase(error=StatementRefused(long, 62)))
    assert refusal.value.message == "Syntax error: failed at position 9 (x): x"


@pytest.mark.parametrize("error", [Unavailable("away"), Overloaded("too many parts", 252)])
async def test_an_outage_stays_an_outage(error: Exception) -> None:
    with pytest.raises(Unavailable):
        await asked(FakeDatabase(error=error))


async def test_a_caller_that_leaves_ends_the_query() -> None:
    database = FakeDatabase(chunks=(HEADER, *[b'["' + b"x" * PAGE_BYTES + b'"]\n'] * 9))
    answer = PeopleSql(database, SqlLimits()).run("select 1")
    assert isinstance(answer, AsyncGenerator)
    await anext(answer)
    await answer.aclose()
    assert database.closed == 1


async def test_more_queries_than_places_wait_and_then_give_up() -> None:
    database = FakeDatabase(gate=asyncio.Event())
    desk = PeopleSql(database, SqlLimits(at_once=1, seconds=0))

    async def read() -> list[RowPage]:
        return [page async for page in desk.run("select 1")]

    running = asyncio.create_task(read())
    await database.entered.wait()
    with pytest.raises(Unavailable, match="1 queries run already"):
        await read()
    assert database.gate is not None
    database.gate.set()
    assert len(await running) == 1
    assert len(await read()) == 1, "its place is free again"


async def pieces(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)), st.integers(1, 20))
def test_lines_do_not_depend_on_how_they_were_cut(wanted: list[bytes], size: int) -> None:
    async def read() -> list[bytes]:
        return [line async for line in lines(pieces(b"".join(line + b"\n" for line in wanted), size))]

    assert asyncio.run(read()) == wanted


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (b"[9007199254740992]", [9007199254740992]),
        (b"[9007199254740993]", ["9007199254740993"]),
        (b"[18446744073709551615, -9007199254740993]", ["18446744073709551615", "-9007199254740993"]),
        (
            b'[[18446744073709551615], {"k": 18446744073709551615}]',
            [["18446744073709551615"], {"k": "18446744073709551615"}],
        ),
        (b'["9999999999999999999", 0.1234567890123456]', ["9999999999999999999", 0.1234567890123456]),
        ('["„ü“", "nan", null, true]'.encode(), ["„ü“", "nan", None, True]),
        (b'["\xff"]', ["\ufffd"]),
    ],
)
def test_integers_stay_exact(line: bytes, read: object) -> None:
    assert json.loads(row_json(line)) == read


def test_exact_values_of_structs() -> None:
    assert exact_value({"a": [1, 1 << 60, True], "b": "x"}) == {"a": [1, str(1 << 60), True], "b": "x"}
