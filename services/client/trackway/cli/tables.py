"""Tables for people: by rich on a terminal, aligned plain text elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

import click

T = TypeVar("T")

Details = Sequence[tuple[str, object]]
"""Labels and values; empty values are left out."""

_COLOURS = {
    **dict.fromkeys(("SUCCEEDED", "COMPLETED", "COMMITTED", "PASSED", "yes"), "green"),
    **dict.fromkeys(("FAILED", "REFUSED", "EXHAUSTED", "QUARANTINED", "no"), "red"),
    **dict.fromkeys(("HELD", "CANCELLED", "ABANDONED"), "yellow"),
    **dict.fromkeys(("RUNNING", "EVALUATING", "STARTING", "STOPPING", "IN_PROGRESS"), "cyan"),
}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column: its heading and where its values come from."""

    heading: str
    value: Callable[[T], object]


def print_table(columns: Sequence[Column[T]], items: Sequence[T]) -> None:
    """Print one row for each item; nothing when there are none."""
    if not items:
        return
    headings = [column.heading for column in columns]
    rows = [[text(column.value(item)) for column in columns] for item in items]
    if sys.stdout.isatty():
        _print_rich(headings, rows)
    else:
        _print_plain([headings, *rows])


def print_details(details: Details) -> None:
    """Print labels and values in two columns."""
    shown = [(label, text(value)) for label, value in details]
    width = max((len(label) for label, value in shown if value), default=0)
    for label, value in shown:
        for i, line in enumerate(value.splitlines()):
            head = click.style(f"{label if i == 0 else '':{width}}", bold=True)
            click.echo(f"{head}  {coloured(line)}")


def coloured(word: str) -> str:
    """Style a word that stands for a state; click takes the colours out where they are not wanted."""
    colour = _COLOURS.get(word)
    return click.style(word, fg=colour) if colour else word


def text(value: object) -> str:
    """A value as a person reads it."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime():
            return moment(value)
        case float():
            return f"{value:.6g}"
        case Mapping() | list() | tuple():
            return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def moment(at: datetime | None) -> str:
    """A time in UTC, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ") if at else ""


def size(size_bytes: float) -> str:
    """Bytes in the unit that fits."""
    for unit in _UNITS[:-1]:
        if abs(size_bytes) < 1024:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    return f"{size_bytes:.1f} {_UNITS[-1]}"


def _print_plain(rows: Sequence[Sequence[str]]) -> None:
    flat = [[cell.replace("\n", " ") for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in flat) for i in range(len(flat[0]))]
    for row in flat:
        click.echo("  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def _print_rich(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        # Text, so that brackets in a message are not taken for markup.
        table.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in row))
    Console().print(table)
