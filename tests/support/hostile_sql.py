"""Writes SQL that tries to reach what it must not: half right, half odd, so that much of it parses somewhere."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

VIEWS = ("training_runs", "training_attempts", "events", "metrics")
COLUMNS = ("run_id", "attempt", "project", "x", "name", "value")
FUNCTIONS = ("lower", "toString", "length", "any", "count", "coalesce", "arrayMap", "tuple", "if", "replace", "columns")
BLANKS = ("/**/", "\n", "\t", "--\n", "-- ' \n", "/* ' */", "/* -- */", "# \n", "#!\n", "/* /* */", "", "  ")
ODD = ("'", '"', "`", "\\", "(", ")", ";", "--", "/*", "*/", "$$", "{", "\x00", "\u00a0", "‘", ",", ".", "'')")


class SqlWriter:
    """Draws statements; the same seed draws the same ones."""

    def __init__(self, seed: int, *, names: tuple[str, ...], calls: tuple[str, ...]) -> None:
        """Args:
        seed: of the draw.
        names: tables that must not be read.
        calls: expressions that must not be computed.
        """
        self._draw = Random(seed)
        self._names = names
        self._calls = calls

    def statement(self) -> str:
        """One statement, perhaps spoiled a little."""
        text = self._query(2)
        for _ in range(self._draw.choice((0, 0, 1, 1, 2, 3))):
            text = self._spoiled(text)
        return text

    def _query(self, depth: int) -> str:
        parts = [self._with(depth), "select ", self._expressions(depth), self._from(depth)]
        if self._draw.random() < 0.3:
            parts.append(f" where {self._expression(depth)}")
        if self._draw.random() < 0.2:
            parts.append(self._draw.choice((" order by 1", " limit 5", " group by all", " settings max_threads = 1")))
        if self._draw.random() < 0.2 and depth:
            parts.append(f" union all {self._query(depth - 1)}")
        return "".join(parts)

    def _with(self, depth: int) -> str:
        if not depth or self._draw.random() < 0.5:
            return ""
        name = self._table_name()
        named = (f"{name} as ({self._query(depth - 1)})", f"{self._expression(depth)} as {name}")
        return f"with {self._draw.choice(named)} "

    def _from(self, depth: int) -> str:
        if self._draw.random() < 0.15:
            return ""
        joins = (", ", " join ", " array join ", " cross join ", " final, ")
        tail = f"{self._draw.choice(joins)}{self._table(depth)}" if self._draw.random() < 0.3 else ""
        return f" from {self._table(depth)}{tail}"

    def _table(self, depth: int) -> str:
        forms: list[Callable[[], str]] = [self._table_name, self._table_name, self._table_name]
        forms.append(lambda: f"{self._table_name()} as {self._table_name()}")
        forms.append(lambda: self._draw.choice((self._table_name(), self._table_name(), *self._calls)))
        forms.append(lambda: f"({self._table_name()} {self._table_name()})")
        if depth:
            forms.append(lambda: f"({self._query(depth - 1)})")
        return self._draw.choice(forms)()

    def _table_name(self) -> str:
        name = self._draw.choice(VIEWS + VIEWS + self._names)
        quote = self._draw.choice(("", "", "", '"', "`"))
        return f"{quote}{name}{quote}"

    def _expressions(self, depth: int) -> str:
        return ", ".join(self._expression(depth) for _ in range(self._draw.randint(1, 3)))

    def _expression(self, depth: int) -> str:
        forms: list[Callable[[], str]] = [lambda: "1", lambda: "*", lambda: "'a'", lambda: self._draw.choice(COLUMNS)]
        forms.append(lambda: self._draw.choice((*COLUMNS, *self._calls)))
        if depth:
            below = depth - 1
            forms.append(lambda: f"{self._draw.choice(FUNCTIONS)}({self._expressions(below)})")
            forms.append(lambda: f"{self._expression(below)} in {self._table_name()}")
            forms.append(lambda: f"{self._expression(below)} not in ({self._table_name()})")
            forms.append(lambda: f"({self._query(below)})")
            forms.append(lambda: f"x -> {self._expression(below)}")
            forms.append(lambda: f"{self._expression(below)} as {self._table_name()}")
        return self._draw.choice(forms)()

    def _spoiled(self, text: str) -> str:
        at = self._draw.randrange(len(text))
        blank, odd = self._draw.choice(BLANKS), self._draw.choice(ODD)
        if " " in text and self._draw.random() < 0.6:
            spaces = [i for i, character in enumerate(text) if character == " "]
            at = self._draw.choice(spaces)
            return text[:at] + blank + text[at + 1 :]
        return self._draw.choice(
            (text[:at] + odd + text[at:], text[:at] + text[at + 1 :], text[:at] + blank + text[at:])
        )
