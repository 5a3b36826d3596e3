"""A statement's text as ClickHouse's lexer sees it: comments gone, quotes closed, one statement only.

The parser that judges the statement (sqlglot) and the one that runs it (ClickHouse) differ in what a comment,
a quote or a blank is. So everything that they could read differently is taken out or refused first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trackway_observer.history.sql.refusal import refused

MAX_CHARACTERS = 64 * 1024
MAX_DEPTH = 48
"""Of brackets; people stay below ten, and parsers recurse."""
BLANK, WORD, QUOTED, STRING, NUMBER, SYMBOL = "blank", "word", "quoted", "string", "number", "symbol"
_TOKEN = re.compile(
    r"""(?P<blank>   [ \t\r\n]+ | --[^\n]* | \#[ !][^\n]* | /\*.*?\*/ )
    | (?P<string>  '(?:[^'\\]|\\.|'')*' )
    | (?P<quoted>  "[^"\\`]+"(?!") | `[^`\\"]+`(?!`) )
    | (?P<word>    [A-Za-z_][A-Za-z0-9_]* )
    | (?P<number>  [0-9](?:[0-9A-Za-z_]|\.(?=[0-9])|(?<=[eE])[+-](?=[0-9]))* )
    | (?P<symbol>  ->|::|<=>|<=|>=|<>|!=|==|\|\||/(?!\*)|[-+*%=<>?:.,;()\[\]] )""",
    re.VERBOSE | re.DOTALL,
)
_OPENS = {")": "(", "]": "["}
_UNREAD = {
    "'": "a text that begins with ' is never closed",
    '"': "a name in double quotes is never closed, is empty, or holds a quote or a backslash",
    "`": "a name in backticks is never closed, is empty, or holds a quote or a backslash",
    "/": "a comment that begins with /* is never closed",
    "{": "parameters and maps in {} are not known here; write the value itself, a map as map('key', value)",
    "\\": "a backslash may only stand inside a text in single quotes",
    "#": "# is not known here; comments begin with --",
}


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of a statement."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement without comments and without a closing semicolon."""

    text: str
    tokens: tuple[Token, ...]
    """Without blanks."""


def read_statement(text: str) -> Statement:
    """Read one statement.

    Raises:
        CommandRejected: it is empty, too long, more than one, or holds what can be read in more than one way.
    """
    if len(text) > MAX_CHARACTERS:
        raise refused(f"the statement has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read")
    pieces = list(_pieces(text))
    while pieces and (pieces[-1].kind == BLANK or pieces[-1].text == ";"):
        pieces.pop()
    _refuse_prefixed_texts(pieces)
    tokens = tuple(piece for piece in pieces if piece.kind != BLANK)
    if not tokens:
        raise refused("the statement is empty; write one SELECT")
    if any(token.text == ";" for token in tokens):
        raise refused("one statement is run at a time; take out what follows the semicolon")
    _refuse_open_brackets(tokens)
    return Statement("".join(piece.text for piece in pieces).lstrip(), tokens)


def _pieces(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise refused(_why_unread(text, at))
        kind, found = str(match.lastgroup), match[0]
        # A comment leaves a blank, so that it still parts two words.
        yield Token(kind, " " if kind == BLANK and not found.isspace() else found)
        at = match.end()


def _why_unread(text: str, at: int) -> str:
    line, character = text.count("\n", 0, at) + 1, text[at]
    why = _UNREAD.get(character, f"{character!r} may only stand inside a text in single quotes")
    return f"line {line}: {why}"


def _refuse_prefixed_texts(pieces: Iterable[Token]) -> None:
    """``N'…'``, ``x'…'`` and the like have escapes of their own in some dialects."""
    for before, after in pairwise(pieces):
        if after.kind == STRING and before.kind in {WORD, NUMBER, QUOTED, STRING}:
            raise refused(f"put a blank between {before.text} and {after.text}")


def _refuse_open_brackets(tokens: Sequence[Token]) -> None:
    opened: list[str] = []
    for token in tokens:
        if token.text in {"(", "["}:
            opened.append(token.text)
        elif token.text in _OPENS and (not opened or opened.pop() != _OPENS[token.text]):
            raise refused(f"a {token.text} closes nothing")
        if len(opened) > MAX_DEPTH:
            raise refused(f"brackets are nested more than {MAX_DEPTH} deep; write the statement flatter")
    if opened:
        raise refused(f"a {opened[-1]} is never closed")
