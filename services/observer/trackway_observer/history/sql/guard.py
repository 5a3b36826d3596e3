"""Turns people's SQL into one SELECT over the contract views that can do nothing but read them, or refuses it."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from trackway_observer.history.sql import words
from trackway_observer.history.sql.functions import FUNCTIONS
from trackway_observer.history.sql.refusal import guess, refused
from trackway_observer.history.sql.shape import refuse_unknown_parts
from trackway_observer.history.sql.tables import refuse_foreign_tables
from trackway_observer.history.sql.text import NUMBER, QUOTED, STRING, WORD, Statement, Token, read_statement
from trackway_observer.history.sql.views import CONTRACT_VIEWS

DIALECT = "clickhouse"
_OPENINGS = frozenset({"select", "with", "from"})


def guard(text: str, views: Collection[str] = CONTRACT_VIEWS) -> str:
    """Return the statement to run: the caller's own text, without comments and closing semicolon.

    Two judges have to agree, each on its own reading: the words before every bracket (no function that is not
    known to only compute), and the syntax tree (one SELECT, known parts, known tables).

    Args:
        text: as a person wrote it.
        views: that may be read.
    Raises:
        CommandRejected: it is anything else; the message says what and what to write instead.
    """
    statement = read_statement(text)
    _refuse_other_statements(statement.tokens)
    _refuse_words(statement.tokens)
    tree = _parsed(statement)
    _refuse_operators_as_names(tree)
    refuse_unknown_parts(tree)
    refuse_foreign_tables(tree, views)
    return statement.text


def _refuse_other_statements(tokens: Sequence[Token]) -> None:
    first = next((token for token in tokens if token.text != "("), tokens[0])
    if first.text.lower() not in _OPENINGS:
        raise refused(f"only a SELECT is run here; the statement begins with {first.text}")


def _refuse_words(tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.kind == WORD and token.text.lower() in words.NEVER:
            raise refused(f"{token.text.upper()} is not allowed; a column of that name goes in double quotes")
    for before, after in pairwise(tokens):
        if after.text == "(" and before.kind in {WORD, QUOTED, STRING, NUMBER}:
            _refuse_function(before)
        if before.text == "(" and after.kind == WORD and after.text.lower() in words.NEVER_OPENED:
            raise refused(f"{after.text.upper()} can't begin a bracket; a column of that name goes in double quotes")
        if after.text == "." and before.text.strip('"`').lower() in words.DATABASES:
            raise refused(f"{before.text} names a database; write the view's name alone")


def _refuse_function(name: Token) -> None:
    if name.kind != WORD:
        raise refused(f"{name.text} can't be called; write a function's name without quotes")
    if not words.may_open(name.text):
        raise refused(f"function {name.text} is not allowed{guess(name.text, FUNCTIONS)}")


def _parsed(statement: Statement) -> exp.Expression:
    try:
        tokens = sqlglot.tokenize(statement.text, read=DIALECT)
        trees = sqlglot.parse(statement.text, read=DIALECT)
    except SqlglotError as error:
        raise refused(f"this is no SQL that can be read: {_plain(error)}") from error
    except RecursionError as error:
        raise refused("the statement is nested too deeply; write it flatter") from error
    _refuse_other_quotes(statement, tokens)
    tree = trees[0] if len(trees) == 1 else None
    if not isinstance(tree, exp.Query):
        raise refused("only one SELECT is run here")
    return tree


def _refuse_other_quotes(statement: Statement, tokens: Sequence[sqlglot.Token]) -> None:
    """The parser must have read the same texts and quoted names as ClickHouse will."""
    quoted = [token.text for token in statement.tokens if token.kind in {STRING, QUOTED}]
    kinds = {sqlglot.TokenType.STRING, sqlglot.TokenType.IDENTIFIER}
    read = [statement.text[token.start : token.end + 1] for token in tokens if token.token_type in kinds]
    if quoted != read:
        raise refused("the quotes can be read in two ways; put texts in single quotes and names in double quotes")


def _refuse_operators_as_names(tree: exp.Expression) -> None:
    """Where the parser takes IN for a column, ClickHouse may still take what follows for a table."""
    if any(name.name.lower() == "in" and not name.args.get("quoted") for name in tree.find_all(exp.Identifier)):
        raise refused("IN needs something before it; a column of that name goes in double quotes")


def _plain(error: SqlglotError) -> str:
    """The parser's words, without the marks that it makes for terminals."""
    known = getattr(error, "errors", None)
    if known:
        first = known[0]
        return f"{first['description'].rstrip('.')} at {first['highlight']!r} in line {first['line']}"
    return re.sub(r"\x1b\[\d+m", "", str(error)).splitlines()[0]
