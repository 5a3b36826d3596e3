"""Resource names and page tokens."""

from __future__ import annotations

import pytest
from trackway_checkpointer.entrypoints.names import (
    format_checkpoint,
    page_size,
    parse_checkpoint,
    parse_run,
    parse_token,
)
from trackway_common.errors import CommandRejected


@pytest.mark.parametrize(
    ("name", "project", "step"),
    [
        ("projects/p/runs/r/checkpoints/s000001200-e0004-abcd", "p", None),
        ("runs/r/checkpoints/1200", "-", 1200),
        ("r/checkpoints/1200", "-", 1200),
        ("r/checkpoints/s1200", "-", 1200),
        ("r/checkpoints/s000001200", "-", 1200),
        ("projects/-/runs/r/checkpoints/0", "-", 0),
    ],
)
def test_names_are_read(name, project, step):
    pointer = parse_checkpoint(name)
    assert (pointer.run.project, pointer.run.run, pointer.step) == (project, "r", step)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "r",
        "r/checkpoints/",
        "/checkpoints/1",
        "a/b/c/checkpoints/1",
        "projects//runs/r/checkpoints/1",
        "r/checkpoints/1/2",
    ],
)
def test_other_names_are_refused_with_their_field(name):
    with pytest.raises(CommandRejected) as raised:
        parse_checkpoint(name)
    assert raised.value.violations[0].field in {"name", "parent"}


def test_a_name_is_written_whole():
    run = parse_run("projects/p/runs/r")
    assert format_checkpoint(run, "s000000001-e0001-abcd") == "projects/p/runs/r/checkpoints/s000000001-e0001-abcd"


def test_pages_have_bounds():
    assert [page_size(asked) for asked in (0, 7, 5000)] == [50, 7, 1000]
    with pytest.raises(CommandRejected, match="negative"):
        page_size(-1)


def test_tokens_are_our_own():
    assert parse_token("") is None
    assert parse_token("42") == 42
    for bad in ("x", "-1", "٤", "1" * 30):
        with pytest.raises(CommandRejected, match="page_token"):
            parse_token(bad)
