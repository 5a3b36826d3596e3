"""The guard against statements that nobody thought of: it never fails otherwise than by refusing, and what it
lets through calls nothing and reads nothing that is not listed."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st
from trackway_common.errors import CommandRejected
from trackway_observer.history.sql import guard
from trackway_observer.history.sql.functions import FUNCTIONS
from trackway_observer.history.sql.text import WORD, read_statement
from trackway_observer.history.sql.views import CONTRACT_VIEWS

HARMLESS = ["select", "1", "*", "run_id", "from", "events", "training_runs", "where", "and", "as", "x", ",", "(", ")"]
HARMLESS += ["count(", "lower(", "x ->", "in", "join", "on", "with", "union all", "array join", "[", "]", "'a'", '"b"']
HARMLESS += ["group by", "order by", "limit", "interval", "case when", "end", ".", "::", "?", ":", "not", "-", "+"]
HOSTILE = ["file('/etc/passwd')", "system.users", "url(", "settings readonly = 0", "into outfile 'x'", "format JSON"]
HOSTILE += [
    "events_state",
    "/*",
    "*/",
    "--",
    "\n",
    "'",
    '"',
    "`",
    ";",
    "#",
    "# ",
    "\\",
    "$$",
    "{",
    "}",
    "\x00",
    "‘",
    "N'",
]
HOSTILE += ["drop table events_state", "kill query", "describe", "explain", "show tables", "dictGet(", "apply(file)"]
HOSTILE += [
    "select * from file(",
    "remote(",
    "executable(",
    "numbers(",
    '"file"(',
    "`url`(",
    "in system.users",
    "sleep(",
]
FUNCTION_NAMES = {name.lower() for name in FUNCTIONS}

pieces = st.lists(st.sampled_from(HARMLESS + HOSTILE), max_size=14)
statements = st.tuples(pieces, st.sampled_from([" ", "", "\n", "/**/"])).map(lambda built: built[1].join(built[0]))


def accepted(sql: str) -> str | None:
    try:
        return guard(sql)
    except CommandRejected as error:
        refusal = error
    assert refusal.message
    assert "\n" not in refusal.message
    return None


@given(st.text(max_size=200))
def test_any_text_is_refused_or_kept(text: str) -> None:
    passed = accepted("select " + text)
    assert passed is None or passed in f"select {text}" or re.search(r"--|#|/\*|;", text)


@settings(max_examples=1500, deadline=None)
@given(statements)
@example("in events_state")
def test_what_passes_names_nothing_that_is_not_listed(sql: str) -> None:
    passed = accepted("select " + sql)
    if passed is None:
        return
    outside_texts = re.sub(r"'(?:[^'\\]|\\.|'')*'", "''", passed)
    bare = re.sub(r'"[^"]+"|`[^`]+`', " quoted", outside_texts)
    assert not re.search(r"quoted\s*\(", bare)
    assert not re.search(r"(?i)\b(file|url|remote|executable|numbers|sleep|dictGet)\s*\(", bare)
    assert not re.search(r"(?i)\b(settings|format|outfile)\s+\w", bare)
    assert not re.search(r"(?i)\bsystem\s*\.\s*users", bare)
    assert not re.search(r"(?i)\b(from|join|in)\s+\(*\s*events_state\b", bare)
    assert ";" not in bare
    assert "/*" not in bare
    assert "--" not in bare


@settings(max_examples=300, deadline=None)
@given(statements)
def test_guarding_twice_changes_nothing_more(sql: str) -> None:
    passed = accepted("select " + sql)
    assert passed is None or guard(passed) == passed


@given(st.sampled_from(sorted(CONTRACT_VIEWS)), st.text(max_size=40))
def test_a_text_stays_a_text(view: str, value: str) -> None:
    literal = "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    sql = f"select 1 from {view} where run_id = {literal}"
    assert guard(sql) == sql
    assert [token.text for token in read_statement(sql).tokens if token.kind != WORD] == ["1", "=", literal]


def test_function_list_holds_none_that_reaches_outside() -> None:
    reaching = (
        r"(?i)file|url(?!s)|dict|join(?!ed)|sleep|throw|host|user|setting|macro|server|version|uptime|random|reduce"
    )
    found = {name for name in FUNCTION_NAMES if re.search(reaching, name)}
    assert found == {"arrayjoin", "minsamplesizeconversion"}
