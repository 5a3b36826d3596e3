"""Runs people's SQL: guarded, limited, read-only, a few at a time, on connections of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Protocol

from trackway_common.clickhouse import Overloaded, Settings, StatementRefused
from trackway_common.errors import TrackwayError, Unavailable

from trackway_observer.history.json_rows import FORMAT, FORMAT_SETTINGS, lines, row_json, words
from trackway_observer.history.sql.guard import guard
from trackway_observer.history.sql.refusal import refused

DEFAULT_ROWS, MAX_ROWS = 1_000, 10_000
PAGE_BYTES = 256 * 1024
MAX_ANSWER_BYTES = 64 << 20
_TOO_MUCH = {
    158: "it reads too many rows",
    159: "it takes longer than {seconds} s",
    160: "it would take longer than {seconds} s",
    241: "it needs more than {memory} MiB of memory",
    307: "it reads too many bytes",
    396: "its answer is too large",
}
"""ClickHouse's codes for a query that met a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlLimits:
    """What one query may take."""

    seconds: int = 10
    memory_bytes: int = 1 << 30
    rows_read: int = 500_000_000
    bytes_read: int = 50 << 30
    at_once: int = 4
    """Queries that run; more wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPage:
    """Some rows of an answer."""

    columns: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """Both only on the first page."""
    rows_json: tuple[str, ...] = ()
    truncated: bool = False
    """True on the last page, when there were more rows."""


class RowStream(Protocol):
    """Where the SQL runs."""

    def stream(self, query: str, fmt: str, *, settings: Settings | None = None) -> AsyncGenerator[bytes]:
        """Yield a query's answer in a ClickHouse format. Raises Unavailable or StatementRefused."""
        ...


class PeopleSql:
    """Holds nothing but how many queries run."""

    def __init__(self, database: RowStream, limits: SqlLimits) -> None:
        self._database = database
        self._limits = limits
        self._places = asyncio.Semaphore(limits.at_once)

    async def run(self, sql: str, max_rows: int = 0) -> AsyncIterator[RowPage]:
        """Yield the rows of one SELECT, page by page.

        Args:
            sql: as a person wrote it.
            max_rows: at most so many; 0 is 1,000, and more than 10,000 is 10,000.
        Raises:
            CommandRejected: it is not allowed, wrong, or takes too much.
            Unavailable: ClickHouse is away, or too many queries run.
        """
        wanted = _row_count(max_rows)
        statement = await asyncio.to_thread(guard, sql)
        async with self._place(), self._in_our_terms():
            answer = self._database.stream(statement, FORMAT, settings=self._settings(wanted))
            # A caller that leaves early must not keep the query running.
            async with aclosing(answer):
                async for page in pages(answer, wanted):
                    yield page

    def _settings(self, wanted: int) -> dict[str, str | int]:
        """Limits first and ``readonly`` last: after it nothing can be set, neither here nor by the statement."""
        limits = self._limits
        return {
            **FORMAT_SETTINGS,
            "limit": wanted + 1,
            "max_result_rows": wanted + 1,
            "result_overflow_mode": "break",
            "max_execution_time": limits.seconds,
            "timeout_overflow_mode": "throw",
            "max_memory_usage": limits.memory_bytes,
            "max_rows_to_read": limits.rows_read,
            "max_bytes_to_read": limits.bytes_read,
            "read_overflow_mode": "throw",
            "readonly": 1,
        }

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._limits.seconds):
                await self._places.acquire()
        except TimeoutError as error:
            raise Unavailable(f"{self._limits.at_once} queries run already; ask again in a moment") from error
        try:
            yield
        finally:
            self._places.release()

    @asynccontextmanager
    async def _in_our_terms(self) -> AsyncIterator[None]:
        try:
            yield
        except (StatementRefused, Overloaded) as error:
            raise self._meaning(error) from error

    def _meaning(self, error: StatementRefused | Overloaded) -> TrackwayError:
        limit = _TOO_MUCH.get(error.code or 0)
        if limit is not None:
            why = limit.format(seconds=self._limits.seconds, memory=self._limits.memory_bytes >> 20)
            return refused(f"the query was stopped: {why}; narrow it by run_id, by a time or by columns")
        if isinstance(error, Overloaded):
            return error
        return refused(str(error).partition(". Expected one of")[0].partition("\n FORMAT ")[0])


async def pages(answer: AsyncIterator[bytes], wanted: int) -> AsyncIterator[RowPage]:
    """Cut an answer into pages; the first one carries the columns, the last one says whether there was more."""
    header: list[tuple[str, ...]] = []
    page, rows, page_bytes, total, total_bytes = RowPage(), list[str](), 0, 0, 0
    async for line in lines(answer):
        if len(header) < 2:
            header.append(words(line))
            page = replace(page, columns=header[0], types=header[-1])
            continue
        if total == wanted or total_bytes > MAX_ANSWER_BYTES:
            yield replace(page, rows_json=tuple(rows), truncated=True)
            return
        rows.append(row_json(line))
        total, total_bytes, page_bytes = total + 1, total_bytes + len(line), page_bytes + len(line)
        if page_bytes >= PAGE_BYTES:
            yield replace(page, rows_json=tuple(rows))
            page, rows, page_bytes = RowPage(), [], 0
    yield replace(page, rows_json=tuple(rows))


def _row_count(asked: int) -> int:
    if asked < 0:
        raise refused(f"max_rows is {asked}; leave it out for {DEFAULT_ROWS:,}")
    return min(asked or DEFAULT_ROWS, MAX_ROWS)
