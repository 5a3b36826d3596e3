"""Names that people write, and page tokens."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.errors import CommandRejected
from trackway_observer.entrypoints.names import (
    AttemptName,
    Scope,
    decode_token,
    encode_token,
    page_size,
    parse_attempt,
    parse_name,
    parse_parent,
)
from trackway_observer.history.reader import Place

RUN = "0199f3a1-7c2e-7d44-9b1a-3f6c2e8a9d01"


@pytest.mark.parametrize(
    ("name", "scope", "attempt"),
    [
        (f"projects/demo/runs/{RUN}/attempts/2", Scope(project="demo", run=RUN), 2),
        (f"projects/-/runs/{RUN}/attempts/2", Scope(run=RUN), 2),
        (f"projects/demo/runs/{RUN}", Scope(project="demo", run=RUN), None),
        (f"{RUN}/12", Scope(run=RUN), 12),
        (f"{RUN}/attempts/12", Scope(run=RUN), 12),
        ("0199f3", Scope(run="0199f3"), None),
    ],
)
def test_names(name: str, scope: Scope, attempt: int | None) -> None:
    assert parse_name(name) == AttemptName(scope=scope, attempt=attempt)


NO_NAMES = ["", "/", "/1", "run/", "run/0", "run/-1", "run/1.0", "run/one", "run/²", "run/1/2", "a/b/c", "run/9e9"]
NO_NAMES += ["run/" + "9" * 5000, "projects//runs/run", "projects/demo/runs/", "projects/demo/runs/run/attempts/0"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_names_no_attempt_is_refused_by_field(name: str) -> None:
    with pytest.raises(CommandRejected, match="names no attempt") as refusal:
        parse_name(name)
    assert refusal.value.violations[0].field == "name"


def test_an_attempt_is_needed_where_one_is_asked_for() -> None:
    assert parse_attempt("run/3").attempt == 3
    with pytest.raises(CommandRejected, match="write run/1 for its first attempt"):
        parse_attempt("run")


@pytest.mark.parametrize(
    ("parent", "scope"),
    [
        ("projects/-", Scope()),
        ("projects/demo", Scope(project="demo")),
        (f"projects/demo/runs/{RUN}", Scope(project="demo", run=RUN)),
        (f"projects/-/runs/{RUN}", Scope(run=RUN)),
        ("projects/demo/runs/-", Scope(project="demo")),
        ("0199", Scope(run="0199")),
    ],
)
def test_parents(parent: str, scope: Scope) -> None:
    assert parse_parent(parent) == scope


@pytest.mark.parametrize("parent", ["", "projects/", "runs/x", "projects/demo/runs/", "projects/demo/pools/x"])
def test_what_has_no_attempts_is_refused_by_field(parent: str) -> None:
    with pytest.raises(CommandRejected, match="has no attempts") as refusal:
        parse_parent(parent)
    assert refusal.value.violations[0].field == "parent"


def test_page_sizes() -> None:
    assert [page_size(asked) for asked in (0, 7, 5000)] == [50, 7, 1000]
    with pytest.raises(CommandRejected, match="page_size: -1 is negative"):
        page_size(-1)


@given(st.integers(0, 1 << 52), st.uuids().map(str), st.integers(1, 1 << 31))
def test_a_token_stands_for_its_place(queued_us: int, run_id: str, attempt: int) -> None:
    place = Place(queued_us=queued_us, run_id=run_id, attempt=attempt)
    assert decode_token(encode_token(place)) == place
    assert decode_token("") is None


@given(st.one_of(st.text(min_size=1), st.text().map(lambda text: base64.urlsafe_b64encode(text.encode()).decode())))
def test_a_token_made_elsewhere_is_refused_or_a_place(token: str) -> None:
    try:
        assert decode_token(token) is None or token
    except CommandRejected as error:
        refusal = error
        assert [violation.field for violation in refusal.violations] == ["page_token"]
