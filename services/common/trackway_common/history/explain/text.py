"""An explanation as plain text, 100 columns wide."""

from __future__ import annotations

import textwrap
from typing import assert_never

from trackway_common.history.explain.blocks import Block, Commands, Lines, Pairs, Quote, Table
from trackway_common.history.explain.document import byline, headline, sections
from trackway_common.history.explain.model import Explanation

WIDTH = 100
INDENT = "  "


def as_text(explanation: Explanation) -> str:
    """Lay the explanation out; ends with a newline."""
    verdict = explanation.verdict
    lines = [headline(explanation), byline(explanation), "─" * WIDTH, *_wrapped(verdict.sentence, "")]
    lines += _wrapped(verdict.outcome, "", first="→ ") if verdict.outcome else []
    for section in sections(explanation):
        lines += ["", section.title.upper()]
        for block in section.blocks:
            lines += _block(block)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _block(block: Block) -> list[str]:
    match block:
        case Pairs():
            return _pairs(block)
        case Table():
            return _table(block)
        case Lines():
            return [line for item in block.items for line in _wrapped(item, INDENT, first=f"{INDENT}- ")]
        case Commands():
            return _commands(block)
        case Quote():
            return [f"{INDENT}│ {line[: WIDTH - 4]}" for line in block.lines]
    assert_never(block)


def _pairs(block: Pairs) -> list[str]:
    width = max(len(label) for label, _ in block.items)
    lines: list[str] = []
    for label, value in block.items:
        lines += _wrapped(value, " " * (len(INDENT) + width + 2), first=f"{INDENT}{label:<{width}}  ")
    return lines


def _commands(block: Commands) -> list[str]:
    """Never wrapped: a command has to survive copying."""
    width = max(len(purpose) for purpose, _ in block.items)
    lines: list[str] = []
    for purpose, command in block.items:
        line = f"{INDENT}{purpose:<{width}}  {command}"
        lines += [line] if len(line) <= WIDTH else [f"{INDENT}{purpose}", f"{INDENT * 2}{command}"]
    return lines


def _table(block: Table) -> list[str]:
    """Columns as wide as their cells; the last wide one takes what is left and wraps."""
    widths = [max(len(row[i]) for row in (block.header, *block.rows)) for i in range(len(block.header))]
    flexible = max(range(len(widths)), key=lambda i: widths[i])
    others = sum(w for i, w in enumerate(widths) if i != flexible) + 2 * (len(widths) - 1) + len(INDENT)
    widths[flexible] = min(widths[flexible], max(20, WIDTH - others))
    shown = [block.header] if any(block.header) else []
    return [line for row in (*shown, *block.rows) for line in _row(row, widths, block, flexible)]


def _row(row: tuple[str, ...], widths: list[int], block: Table, flexible: int) -> list[str]:
    wrapped = textwrap.wrap(row[flexible], widths[flexible]) or [""]
    lines = [_cells(tuple(wrapped[0] if i == flexible else c for i, c in enumerate(row)), widths, block)]
    indent = " " * (len(INDENT) + sum(w + 2 for w in widths[:flexible]))
    return lines + [indent + more for more in wrapped[1:]]


def _cells(row: tuple[str, ...], widths: list[int], block: Table) -> str:
    cells = (
        f"{cell:>{width}}" if name in block.right else f"{cell:<{width}}"
        for cell, width, name in zip(row, widths, block.header, strict=True)
    )
    return INDENT + "  ".join(cells)


def _wrapped(text: str, indent: str, *, first: str | None = None) -> list[str]:
    start = indent if first is None else first
    lead = " " * len(start) if first is not None else indent
    return textwrap.wrap(
        text, WIDTH, initial_indent=start, subsequent_indent=lead, break_long_words=False, break_on_hyphens=False
    ) or [start]
