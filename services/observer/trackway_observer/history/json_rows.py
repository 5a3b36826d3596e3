"""Rows as JSON arrays, from ClickHouse's JSONCompactEachRow: one line each.

Times are ISO 8601 in UTC, decimals are numbers, NaN and infinities are the texts "nan", "inf" and "-inf", and
integers beyond 2^53 are texts, because most readers of JSON would round them.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType

from trackway_common.clickhouse import Settings
from trackway_common.errors import CommandRejected

FORMAT = "JSONCompactEachRowWithNamesAndTypes"
FORMAT_SETTINGS: Settings = MappingProxyType(
    {
        "date_time_output_format": "iso",
        "output_format_json_quote_64bit_integers": 0,
        "output_format_json_quote_decimals": 0,
        "output_format_json_quote_denormals": 1,
        "output_format_json_validate_utf8": 1,
        # A query that fails half-way must end as an error, not as a row.
        "http_write_exception_in_output_format": 0,
        "wait_end_of_query": 1,
    }
)
MAX_ROW_BYTES = 4 << 20
"""Half of what one gRPC message may hold."""
EXACT = 1 << 53
_LONG_NUMBER = re.compile(rb"[0-9]{16}")


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Cut a stream of bytes into lines; blank ones are left out.

    Raises:
        CommandRejected: a line is longer than a row may be.
    """
    left = b""
    async for chunk in chunks:
        *whole, left = (left + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
        if len(left) > MAX_ROW_BYTES:
            raise CommandRejected(
                f"one row is larger than {MAX_ROW_BYTES >> 20} MiB; select fewer columns or shorter texts",
                reason="ROW_TOO_LARGE",
            )
    if left:
        yield left


def row_json(line: bytes) -> str:
    """One row as the caller gets it."""
    if not _LONG_NUMBER.search(line):
        return line.decode(errors="replace")
    return json.dumps(json.loads(line, parse_int=_exact), ensure_ascii=False, separators=(",", ":"))


def words(line: bytes) -> tuple[str, ...]:
    """Names or types of the columns."""
    named: list[str] = json.loads(line)
    return tuple(named)


def exact_value(value: object) -> object:
    """A value that JSON and protobuf's Struct keep as it is."""
    match value:
        case bool():
            return value
        case int() if abs(value) > EXACT:
            return str(value)
        case Mapping():
            return {str(key): exact_value(item) for key, item in value.items()}
        case list() | tuple():
            return [exact_value(item) for item in value]
    return value


def _exact(digits: str) -> int | str:
    number = int(digits)
    return number if abs(number) <= EXACT else digits
