"""Reads a mapping field by field and notes every violation instead of stopping at the first."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from trackway_common.canonical import MAX_SAFE_INTEGER, Json
from trackway_common.errors import FieldViolation

Choice = TypeVar("Choice", bound=StrEnum)


def nearest(word: str, options: Iterable[str]) -> str:
    """``; did you mean X?`` where an option is close, else empty."""
    found = difflib.get_close_matches(word, list(options), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


class Fields:
    """One mapping at one path; violations of all of them land in one shared list.

    A getter returns its default where the field is absent or wrong, so that reading goes on.
    """

    def __init__(
        self, value: Json, path: str, violations: list[FieldViolation], known: Sequence[str] | None = None
    ) -> None:
        self.path = path
        self._violations = violations
        self._values: Mapping[str, Json] = value if isinstance(value, Mapping) else {}
        if not isinstance(value, Mapping):
            self._note(path or "config", f"must be a mapping, not {_kind(value)}")
        for key in self._values:
            if known is not None and key not in known:
                self.violation(key, f"is not a field here{nearest(key, known) or _listing(known)}")

    def violation(self, key: str, description: str) -> None:
        """Note what is wrong with one field of this mapping."""
        self._note(self._at(key), description)

    def names(self) -> tuple[str, ...]:
        """What was written, in its order."""
        return tuple(self._values)

    def has(self, key: str) -> bool:
        """Whether the field was written at all."""
        return key in self._values

    def kind(self, key: str) -> str:
        """What was written, in words such as "a mapping"; for fields that may have two forms."""
        return _kind(self._values.get(key))

    def text(self, key: str, default: str | None = None) -> str:
        """A string; required without a default, and then not empty."""
        value = self._values.get(key)
        if value is None:
            return self._absent(key, default, "")
        if isinstance(value, str) and (value or default == ""):
            return value
        quoted = f'; quote it: "{value}"' if isinstance(value, int | float) and not isinstance(value, bool) else ""
        self.violation(key, f"must be text, not {_kind(value)}{quoted}")
        return default or ""

    def choice(self, key: str, options: type[Choice], default: Choice) -> Choice:
        """One of an enumeration's words; required, the default only lets reading go on."""
        word = self.text(key)
        try:
            return options(word)
        except ValueError:
            if word:
                words = [option.value for option in options]
                self.violation(key, f"{word!r} is not known{nearest(word, words)}{_listing(words)}")
            return default

    def whole(self, key: str, default: int, *, at_least: int, at_most: int = MAX_SAFE_INTEGER) -> int:
        """A whole number within what JSON keeps exact."""
        value = self._values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            self.violation(key, f"must be a whole number, not {_kind(value)}")
            return default
        if not at_least <= value <= at_most:
            above = "below 2^53" if at_most == MAX_SAFE_INTEGER else f"at most {at_most}"
            self.violation(key, f"is {value}; must be at least {at_least} and {above}")
            return default
        return value

    def number(
        self, key: str, default: float | None = None, *, low: float = -math.inf, high: float = math.inf
    ) -> float:
        """A number in [low, high]; required without a default."""
        value = self._values.get(key)
        if value is None:
            return self._absent(key, default, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.violation(key, f"must be a number, not {_kind(value)}")
            return default or 0.0
        if not (low <= value <= high and abs(value) <= MAX_SAFE_INTEGER):
            self.violation(key, f"must lie in [{low:g}, {high:g}] and below 2^53 in size")
            return default or 0.0
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """true or false."""
        value = self._values.get(key, default)
        if isinstance(value, bool):
            return value
        self.violation(key, f"must be true or false, not {_kind(value)}")
        return default

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; absent is empty."""
        items = self._list(key)
        for i, item in enumerate(items):
            if not isinstance(item, str) or not item:
                self.violation(f"{key}[{i}]", f"must be text, not {_kind(item)}")
        return tuple(item for item in items if isinstance(item, str) and item)

    def mapping(self, key: str) -> Mapping[str, Json]:
        """A mapping of anything, as it was written; absent is empty."""
        value = self._values.get(key, {})
        if isinstance(value, Mapping):
            return value
        self.violation(key, f"must be a mapping, not {_kind(value)}")
        return {}

    def wholes(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers from 0; absent is empty."""
        items = self._list(key)
        for i, item in enumerate(items):
            if not _is_whole(item):
                self.violation(f"{key}[{i}]", f"must be a whole number from 0, not {_kind(item)}")
        return tuple(item for item in items if isinstance(item, int) and _is_whole(item))

    def section(self, key: str, known: Sequence[str] | None = None) -> Fields:
        """A mapping inside this one, with any keys when none are named; absent is empty."""
        return Fields(self._values.get(key, {}), self._at(key), self._violations, known)

    def sections(self, key: str, known: Sequence[str]) -> list[Fields]:
        """A list of mappings; absent is empty."""
        items = self._list(key)
        return [Fields(item, f"{self._at(key)}[{i}]", self._violations, known) for i, item in enumerate(items)]

    def _list(self, key: str) -> Sequence[Json]:
        value = self._values.get(key, [])
        if isinstance(value, Sequence) and not isinstance(value, str):
            return value
        self.violation(key, f"must be a list, not {_kind(value)}")
        return []

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def _absent(self, key: str, default: Default | None, otherwise: Default) -> Default:
        if default is not None:
            return default
        self.violation(key, "is required")
        return otherwise

    def _note(self, field: str, description: str) -> None:
        self._violations.append(FieldViolation(field=field, description=description))


Default = TypeVar("Default", str, float)


def _is_whole(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SAFE_INTEGER


def _listing(words: Iterable[str]) -> str:
    return f"; one of {', '.join(words)}"


def _kind(value: Json) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text" if value else "empty text"
        case Mapping():
            return "a mapping"
        case _:
            return "a list"
