"""Reads of a statement what the HTTP protocol needs: where an INSERT's data begins, and whether rows come back."""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_FORMAT = "TabSeparated"
_ANSWERING = frozenset(
    {"SELECT", "WITH", "SHOW", "EXISTS", "DESCRIBE", "DESC", "EXPLAIN", "CHECK", "KILL", "FROM", "VALUES"}
)
_TOKEN = re.compile(
    rb"""\s+ | --[^\n]*(?:\n|\Z) | \#[ !][^\n]*(?:\n|\Z) | /\*.*?\*/   # blank
    | (?P<quoted> '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `(?:[^`\\]|\\.)*` )
    | (?P<word> [A-Za-z_][A-Za-z0-9_]* )
    | (?P<other> . )""",
    re.VERBOSE | re.DOTALL,
)
_TRAILING_FORMAT = re.compile(r"\bFORMAT\s+(\w+)\s*(?:SETTINGS\s[^()]*)?;?\s*\Z", re.IGNORECASE)
_WORDS_READ = 4096
"""An INSERT's head is short; the scan never walks through megabytes of data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """An INSERT whose rows stand behind it in some format."""

    head: str
    """Up to, without, ``FORMAT``."""
    format: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Any other statement."""

    text: str
    answer_format: str | None
    """Format of the rows that come back; None: none come back."""


class UnreadableStatement(ValueError):
    """The body is neither text nor an INSERT with data."""


def read_statement(body: bytes, default_format: str = DEFAULT_FORMAT) -> Insert | Query:
    """Split what a client sent.

    Raises:
        UnreadableStatement: a statement other than an INSERT with data is not UTF-8.
    """
    keyword = _first_keyword(body)
    if keyword == "INSERT":
        insert = _insert_with_data(body)
        if insert is not None:
            return insert
    text = _text(body)
    answers = keyword in _ANSWERING or text.lstrip().startswith("(")
    return Query(text=text, answer_format=_answer_format(text, default_format) if answers else None)


def _first_keyword(body: bytes) -> str:
    for token in _TOKEN.finditer(body):
        if token["word"]:
            return str(token["word"].decode()).upper()
        if token["other"] or token["quoted"]:
            return ""
    return ""


def _insert_with_data(body: bytes) -> Insert | None:
    """``INSERT INTO t (a, b) [SETTINGS …] FORMAT Native\\n<data>``; None when rows come from elsewhere."""
    depth = 0
    words = iter(_TOKEN.finditer(body))
    for _, token in zip(range(_WORDS_READ), words, strict=False):
        depth += {b"(": 1, b")": -1}.get(token["other"] or b"", 0)
        word = (token["word"] or b"").upper()
        if depth or not word:
            continue
        if word in {b"SELECT", b"VALUES", b"WITH", b"INFILE"}:
            return None
        if word == b"FORMAT":
            return _split_at_format(body, token.start(), token.end())
    return None


def _split_at_format(body: bytes, start: int, end: int) -> Insert | None:
    name = re.compile(rb"\s+(\w+)[ \t]*;?[ \t]*(?:\r?\n)?").match(body, end)
    if name is None or name[1].upper() == b"VALUES":
        return None
    return Insert(head=_text(body[:start]).rstrip(), format=name[1].decode(), data=body[name.end() :])


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableStatement(f"the statement is not UTF-8 at byte {error.start}") from error


def _answer_format(text: str, default_format: str) -> str:
    named = _TRAILING_FORMAT.search(text)
    return named[1] if named else default_format
