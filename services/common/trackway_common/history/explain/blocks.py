"""The few shapes that an explanation is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Labels and what they stand for; an empty label continues the one before."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns; those named in ``right`` are aligned to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Sentences, one an item."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What to type, each under its purpose."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Words of a program, as it wrote them."""

    lines: tuple[str, ...]


Block: TypeAlias = Pairs | Table | Lines | Commands | Quote


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A titled group of blocks."""

    title: str
    blocks: tuple[Block, ...]
