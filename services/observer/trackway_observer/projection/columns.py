"""Rows laid out as columns, table by table, ready to insert."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from trackway_common.history.receipt import columns_of

from trackway_observer.projection.rows.row import Row

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(2255, 1, 1, tzinfo=UTC)
"""What a DateTime64 column holds for certain; a writer's absurd clock must not stop the projection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumns:
    """Rows of one table, column by column."""

    table: str
    names: tuple[str, ...]
    data: tuple[Sequence[object], ...]


def by_table(rows: Iterable[Row]) -> tuple[TableColumns, ...]:
    """Group rows by table, in the order of first appearance."""
    tables: dict[str, list[dict[str, object]]] = {}
    for row in rows:
        tables.setdefault(row.TABLE, []).append({n: _fitting(v) for n, v in columns_of(row).items()})
    return tuple(_columns(table, group) for table, group in tables.items())


def _columns(table: str, rows: list[dict[str, object]]) -> TableColumns:
    names = tuple(rows[0])
    return TableColumns(table=table, names=names, data=tuple([row[name] for row in rows] for name in names))


def _fitting(value: object) -> object:
    return min(max(value, EARLIEST), LATEST) if isinstance(value, datetime) else value
