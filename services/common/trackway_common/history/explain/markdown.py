"""An explanation as Markdown, for issues and chats."""

from __future__ import annotations

from typing import assert_never

from trackway_common.history.explain.blocks import Block, Commands, Lines, Pairs, Quote, Table
from trackway_common.history.explain.document import byline, headline, sections
from trackway_common.history.explain.model import Explanation


def as_markdown(explanation: Explanation) -> str:
    """Lay the explanation out; ends with a newline."""
    verdict = explanation.verdict
    lines = [f"# {escaped(headline(explanation))}", "", escaped(byline(explanation)), ""]
    lines += [f"**{escaped(verdict.sentence)}** {escaped(verdict.outcome)}".strip()]
    for section in sections(explanation):
        lines += ["", f"## {section.title}"]
        for block in section.blocks:
            lines += ["", *as_lines(block)]
    return "\n".join(lines) + "\n"


def as_lines(block: Block) -> list[str]:
    """One block as lines of Markdown."""
    match block:
        case Pairs():
            return [f"- {f'**{label}** ' if label else ''}{escaped(value)}" for label, value in block.items]
        case Table():
            return _table(block)
        case Lines():
            return [f"- {escaped(item)}" for item in block.items]
        case Commands():
            return ["```sh", *(f"{command}  # {purpose}" for purpose, command in block.items), "```"]
        case Quote():
            return ["```text", *(line.replace("```", "'") for line in block.lines), "```"]
    assert_never(block)


def _table(block: Table) -> list[str]:
    rule = ["---:" if name in block.right else "---" for name in block.header]
    rows = [[escaped(cell) for cell in row] for row in block.rows]
    return [f"| {' | '.join(cells)} |" for cells in (list(block.header), rule, *rows)]


def escaped(text: str) -> str:
    """Text that changes no layout: log lines may hold anything."""
    flat = " ".join(text.split())
    for character in "\\`*_<>|[]":
        flat = flat.replace(character, f"\\{character}")
    return flat
