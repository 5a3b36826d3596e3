"""chDB in threads: one handle a request, so nothing that a request sets outlives it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import chdb

from trackway.local.clickhouse_server.exchange import BAD_ARGUMENTS, Answer, EngineError, Request
from trackway.local.clickhouse_server.statement import Insert, Query

THREADS = 16
"""Statements at once. A handle opens in 0.3 ms, chDB releases the GIL, and a slow query must not hold up the rest."""
_CODE = re.compile(r"Code: (\d+)\.")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Engine:
    """The engine on one data folder; no second process may open it."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder.resolve())
        self._keeper = chdb.connect(self._folder)
        """Keeps the engine open between requests."""
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="chdb")
        self.version, self.timezone = self._identity()

    async def run(self, request: Request) -> Answer:
        """Run one statement to its end.

        Raises:
            EngineError: as ClickHouse would answer it.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(_run, self._folder, request))

    def close(self) -> None:
        """Cancel what runs and close; blocks until the threads are done."""
        _translated(lambda: self._keeper.query("KILL QUERY WHERE 1 ASYNC"))
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._keeper.close()

    def _identity(self) -> tuple[str, str]:
        answer = self._keeper.query("SELECT version(), timezone()", "TabSeparated").bytes().decode()
        version, timezone = answer.strip().split("\t")
        return version, timezone


def _run(folder: str, request: Request) -> Answer:
    handle = chdb.connect(folder)
    try:
        _translated(lambda: _prepare(handle, request))
        if isinstance(request.statement, Insert):
            return _insert(handle, request.statement)
        return _query(handle, request.statement, request.default_format)
    finally:
        handle.close()


def _prepare(handle: Any, request: Request) -> None:
    if request.database:
        handle.query(f"USE {_identifier(request.database)}")
    # readonly goes last: it forbids to change any other setting after it.
    for name in sorted(request.settings, key=lambda name: name == "readonly"):
        if not _NAME.match(name):
            raise EngineError(BAD_ARGUMENTS, f"Code: {BAD_ARGUMENTS}. DB::Exception: {name!r} is no setting's name")
        handle.query(f"SET {name} = {_literal(request.settings[name])}")


def _query(handle: Any, query: Query, default_format: str) -> Answer:
    result = _translated(lambda: handle.query(query.text, default_format))
    return Answer(
        body=result.bytes() or b"",
        format=query.answer_format,
        read_rows=result.storage_rows_read(),
        read_bytes=result.storage_bytes_read(),
        written_rows=result.rows_written(),
        written_bytes=result.bytes_written(),
        result_rows=result.rows_read() if query.answer_format else 0,
        elapsed_ns=_nanoseconds(result.elapsed()),
    )


def _insert(handle: Any, insert: Insert) -> Answer:
    stream = _translated(lambda: handle.send_insert(insert.head, insert.format))
    try:
        # One append: the engine cuts blocks from it as from a file, so a repeat under the same
        # insert_deduplication_token is cut the same way and recognised block by block.
        _translated(lambda: stream.append(insert.data))
        result = _translated(stream.finish)
    finally:
        stream.close()
    return Answer(
        body=b"",
        format=None,
        written_rows=result.rows_written,
        written_bytes=result.bytes_written,
        elapsed_ns=_nanoseconds(result.elapsed),
    )


def _translated(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except RuntimeError as error:
        message = str(error)
        code = _CODE.search(message)
        if code is None:
            raise EngineError(0, message) from error
        raise EngineError(int(code[1]), message[code.start() :]) from error


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


def _identifier(name: str) -> str:
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def _literal(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
