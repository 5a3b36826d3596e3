"""The read model's database over HTTP: a server in production, the local stack's chDB, one code path.

The client blocks, so every call runs in a thread of this object's own pool and carries a deadline.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import clickhouse_connect
from clickhouse_connect.driver.client import Client
from clickhouse_connect.driver.exceptions import ClickHouseError, OperationalError
from urllib3.exceptions import HTTPError

from trackway_common.errors import TrackwayError, Unavailable
from trackway_common.settings import ClickHouseSettings

Settings = Mapping[str, str | int]
T = TypeVar("T")

CONNECT_TIMEOUT_S = 5
CHUNK_BYTES = 1 << 16
_PASSING_CODES = frozenset({3, 159, 202, 203, 209, 210, 241, 242, 243, 252, 319, 425, 999})
"""ClickHouse's codes for what passes by itself: overload, timeouts, no memory, no space, too many parts, read-only."""


_CREDENTIAL_CODES = frozenset({192, 193, 516})
"""Unknown user, wrong password, and what a server says that tells neither from the other."""


class StatementRefused(TrackwayError):
    """The database answered that this statement can't be: asking again gives the same answer."""

    def __init__(self, message: str, code: int | None) -> None:
        super().__init__(message)
        self.code = code


class Overloaded(Unavailable):
    """The database gave up on this statement: too much time, memory or load; a lighter one may pass."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class ClickHouse:
    """One database. Connects when first used; several calls may run at once."""

    def __init__(self, settings: ClickHouseSettings, *, threads: int = 4, timeout_s: int = 60) -> None:
        self.database = settings.database
        self._settings = settings
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="clickhouse")
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._types: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    async def command(self, statement: str, *, settings: Settings | None = None) -> None:
        """Run a statement that returns no rows.

        Raises:
            Unavailable: the database is away or overloaded; the statement may have taken effect.
            StatementRefused: it can't be carried out.
        """
        client = await self._connected()
        await self._call(partial(client.command, statement, settings=dict(settings or {}), use_database=True))

    async def rows(
        self, query: str, parameters: Mapping[str, Any] | None = None, *, settings: Settings | None = None
    ) -> Sequence[Sequence[Any]]:
        """Return all rows of a query; times come back in UTC. Raises as ``command`` does."""
        client = await self._connected()
        result = await self._call(
            partial(client.query, query, parameters=dict(parameters or {}), settings=dict(settings or {}))
        )
        return list(result.result_rows)

    async def records(self, query: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """Return all rows by column name. Raises as ``command`` does."""
        client = await self._connected()
        result = await self._call(partial(client.query, query, parameters=dict(parameters or {})))
        return [dict(zip(result.column_names, row, strict=True)) for row in result.result_rows]

    async def stream(self, query: str, fmt: str, *, settings: Settings | None = None) -> AsyncGenerator[bytes]:
        """Yield a query's answer in a ClickHouse format, piece by piece. Raises as ``command`` does."""
        client = await self._connected()
        body: Any = await self._call(partial(client.raw_stream, query, fmt=fmt, settings=dict(settings or {})))
        try:
            while chunk := await self._call(partial(body.read, CHUNK_BYTES)):
                yield chunk
        finally:
            await self._call(body.close)

    async def insert(
        self, table: str, columns: Sequence[str], data: Sequence[Sequence[object]], *, token: str | None = None
    ) -> None:
        """Insert columns of values (not rows).

        Args:
            table: of this database.
            columns: their names.
            data: one sequence per column, all of one length.
            token: a repeat under the same token has no effect, also through materialized views.
        """
        client = await self._connected()
        types = await self._column_types(table, columns)
        settings: dict[str, Any] = {}
        if token is not None:
            settings = {
                "insert_deduplicate": 1,
                "insert_deduplication_token": token,
                "deduplicate_blocks_in_dependent_materialized_views": 1,
            }
        await self._call(
            partial(
                client.insert,
                table,
                data,
                column_names=list(columns),
                column_type_names=types,
                column_oriented=True,
                settings=settings,
            )
        )

    async def close(self) -> None:
        """Close connections; calls in flight end with an error."""
        if self._client is not None:
            self._client.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _column_types(self, table: str, columns: Sequence[str]) -> list[str]:
        if table not in self._types:
            described = await self.rows(f"describe table {table}")
            self._types[table] = (tuple(row[0] for row in described), tuple(row[1] for row in described))
        known = dict(zip(*self._types[table], strict=True))
        return [known[column] for column in columns]

    async def _connected(self) -> Client:
        async with self._connecting:
            if self._client is None:
                self._client = await self._call(partial(_connect, self._settings, self._timeout_s))
            return self._client

    async def _call(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, work)
        except (ClickHouseError, HTTPError, OSError) as error:
            raise self._translated(error) from error

    def _translated(self, error: Exception) -> TrackwayError:
        code = getattr(error, "code", None)
        message = _bare(str(error))
        if code in _PASSING_CODES:
            return Overloaded(f"ClickHouse gave up: {message}", code)
        if code in _CREDENTIAL_CODES:
            hint = "correct TRACKWAY_CLICKHOUSE__USER and TRACKWAY_CLICKHOUSE__PASSWORD"
            return StatementRefused(f"ClickHouse refuses user {self._settings.user!r} ({message}); {hint}", code)
        if untrusted := _untrusted(error):
            return Unavailable(
                f"the certificate of ClickHouse at {self._settings.url} is not trusted ({untrusted.verify_message}); "
                "correct TRACKWAY_CLICKHOUSE__CA_FILE, or TRACKWAY_CLICKHOUSE__URL where the name does not match"
            )
        if code is None and isinstance(error, OperationalError | HTTPError | OSError):
            return Unavailable(f"ClickHouse at {self._settings.url} does not answer")
        return StatementRefused(message, code)


def _connect(settings: ClickHouseSettings, timeout_s: int) -> Client:
    url = urlsplit(settings.url)
    secure = url.scheme == "https"
    return clickhouse_connect.get_client(
        host=url.hostname,
        port=url.port or (8443 if secure else 8123),
        username=settings.user,
        password=settings.password.get_secret_value(),
        database=settings.database,
        secure=secure,
        verify=settings.verify,
        ca_cert=str(settings.ca_file) if settings.ca_file else None,
        connect_timeout=CONNECT_TIMEOUT_S,
        send_receive_timeout=timeout_s,
        query_retries=0,
        autogenerate_session_id=False,
        tz_mode="aware",
        client_name="trackway",
    )


def _untrusted(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """The refused certificate beneath what the libraries made of it."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def _bare(message: str) -> str:
    """ClickHouse's own words, without what the client wraps around them."""
    words = message.partition("DB::Exception: ")[2] or message
    return words.partition(" (version ")[0].strip()
