"""What passes between the HTTP side and the engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trackway.local.clickhouse_server.statement import Insert, Query

BAD_ARGUMENTS = 36


class EngineError(Exception):
    """The engine refused or failed; ``code`` is ClickHouse's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One statement and the session that it runs in."""

    statement: Insert | Query
    default_format: str
    database: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings and ``param_…`` values as the client sent them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of it."""

    body: bytes
    format: str | None
    """None: the statement returns no rows at all."""
    read_rows: int = 0
    read_bytes: int = 0
    written_rows: int = 0
    written_bytes: int = 0
    result_rows: int = 0
    elapsed_ns: int = 0
