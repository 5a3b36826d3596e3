"""From an HTTP request to an engine request: pure, so that the protocol is tested without an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trackway.local.clickhouse_server.exchange import Request
from trackway.local.clickhouse_server.statement import DEFAULT_FORMAT, UnreadableStatement, read_statement

NOT_IMPLEMENTED = 48
SYNTAX_ERROR = 62
TRANSPORT = frozenset(
    {
        "query",
        "database",
        "default_format",
        "user",
        "password",
        "quota_key",
        "role",
        "query_id",
        "session_id",
        "session_timeout",
        "session_check",
        "close_session",
        "compress",
        "decompress",
        "buffer_size",
        "wait_end_of_query",
        "client_protocol_version",
        "stacktrace",
        "enable_http_compression",
        "http_zlib_compression_level",
        "send_progress_in_http_headers",
        "http_headers_progress_interval_ms",
        "cancel_http_readonly_queries_on_client_close",
    }
)
"""Parameters that the HTTP layer consumes; everything else is a setting or a ``param_…`` of the query."""
READONLY = "2"
"""ClickHouse lets GET read, and change settings, only."""


class Refused(Exception):
    """The request can't be understood; ``code`` is ClickHouse's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = f"Code: {code}. DB::Exception: {message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """What matters of an HTTP request."""

    method: str
    parameters: Mapping[str, str]
    """Of the URL and, for a form, of its fields."""
    headers: Mapping[str, str]
    body: bytes


def engine_request(http: HttpRequest) -> Request:
    """Read the statement, its settings and its parameters.

    Raises:
        Refused: there is no statement, it is not text, or it asks for what chDB can't do.
    """
    _refuse_native_compression(http.parameters)
    default_format = _first(http, "default_format", "X-ClickHouse-Format") or DEFAULT_FORMAT
    try:
        statement = read_statement(_statement_bytes(http), default_format)
    except UnreadableStatement as error:
        raise Refused(SYNTAX_ERROR, str(error)) from error
    return Request(
        statement=statement,
        default_format=default_format,
        database=_database(http),
        settings=_settings(http),
    )


def wants_compression(http: HttpRequest) -> bool:
    """Whether the client asked for a compressed answer as ClickHouse requires: by setting, not by header alone."""
    return http.parameters.get("enable_http_compression") in {"1", "true"}


def _statement_bytes(http: HttpRequest) -> bytes:
    """The ``query`` parameter, then the body: an INSERT's data may follow its statement either way."""
    parts: Iterable[bytes] = (http.parameters.get("query", "").encode(), http.body)
    joined = b"\n".join(part for part in parts if part.strip(b"\r\n"))
    if not joined.strip():
        raise Refused(SYNTAX_ERROR, "Syntax error: the query is empty. (SYNTAX_ERROR)")
    return joined


def _refuse_native_compression(parameters: Mapping[str, str]) -> None:
    for name in ("compress", "decompress"):
        if parameters.get(name, "0") not in {"0", "", "false"}:
            raise Refused(
                NOT_IMPLEMENTED,
                f"{name}=1 (ClickHouse's own block compression) is not served here; "
                "use Accept-Encoding or Content-Encoding. (NOT_IMPLEMENTED)",
            )


def _database(http: HttpRequest) -> str | None:
    return _first(http, "database", "X-ClickHouse-Database") or None


def _settings(http: HttpRequest) -> dict[str, str]:
    settings = {name: value for name, value in http.parameters.items() if name not in TRANSPORT}
    if http.method == "GET":
        settings.setdefault("readonly", READONLY)
    return settings


def _first(http: HttpRequest, parameter: str, header: str) -> str:
    return http.parameters.get(parameter) or http.headers.get(header, "")
