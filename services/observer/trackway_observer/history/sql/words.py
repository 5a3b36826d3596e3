"""Which words may stand before an opening bracket, and which nowhere."""

from __future__ import annotations

from trackway_observer.history.sql.functions import AGGREGATES, COMBINATORS, SCALARS

_TYPES = """
    array tuple map nullable lowcardinality fixedstring decimal decimal32 decimal64 decimal128 datetime datetime64
    enum8 enum16 variant
"""
_KEYWORDS = """
    all and any as asc between by case cube desc distinct div else end except exists filter from having ilike in
    intersect interval is join like limit mod not null offset on or order over prewhere qualify replace rollup select
    sets then union using when where with
"""
_BEFORE_BRACKETS = frozenset((_TYPES + _KEYWORDS).split()) | {name.lower() for name in SCALARS}
_AGGREGATES = frozenset(name.lower() for name in AGGREGATES)

_STATEMENTS = """
    alter attach backup check create delete desc describe detach drop exchange explain grant insert kill optimize
    rename restore revoke set show system truncate undrop update use values watch
"""
NEVER = frozenset({"into", "outfile", "infile", "settings", "format", "recursive", "apply"})
"""Keywords of what a read-only SELECT does not need; as a column's name they have to be quoted."""
NEVER_OPENED = frozenset(_STATEMENTS.split())
"""Words that begin another statement, which ClickHouse may take in brackets where a parser sees a name."""
DATABASES = frozenset({"system", "information_schema", "default"})
"""What no name may be qualified with, whatever it means to a parser."""


def may_open(word: str) -> bool:
    """Whether an opening bracket may follow the word."""
    return word.lower() in _BEFORE_BRACKETS or _is_aggregate(word)


def _is_aggregate(word: str) -> bool:
    if word.lower() in _AGGREGATES:
        return True
    suffix = next((suffix for suffix in COMBINATORS if word.endswith(suffix)), None)
    return suffix is not None and _is_aggregate(word.removesuffix(suffix))
