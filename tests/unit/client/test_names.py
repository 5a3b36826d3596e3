"""Names as people write them."""

from __future__ import annotations

import pytest
from trackway.client.names import AttemptName, checkpoint_name, parse_attempt, run_id
from trackway_common.errors import CommandRejected

RUN = "019a0000-0000-7000-8000-000000000001"


def _lookup(short: str) -> str:
    assert short == "019a"
    return RUN


def _never(short: str) -> str:
    raise AssertionError(f"asked for {short}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (RUN, AttemptName(run=RUN)),
        ("019a", AttemptName(run="019a")),
        (f"{RUN}/3", AttemptName(run=RUN, attempt=3)),
        (f"{RUN}/attempts/3", AttemptName(run=RUN, attempt=3)),
        (f"projects/p/runs/{RUN}/attempts/12", AttemptName(run=RUN, attempt=12)),
        (f"projects/p/runs/{RUN}", AttemptName(run=RUN)),
    ],
)
def test_attempts(text: str, expected: AttemptName) -> None:
    assert parse_attempt(text) == expected


@pytest.mark.parametrize("text", ["", f"{RUN}/0", f"{RUN}/x", f"{RUN}/1/2", "/1", f"{RUN}/-1", f"{RUN}/²"])
def test_what_is_no_attempt_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(CommandRejected, match="write RUN or RUN/ATTEMPT"):
        parse_attempt(text)


@pytest.mark.parametrize("text", [RUN, f"projects/p/runs/{RUN}"])
def test_a_full_run_id_is_not_looked_up(text: str) -> None:
    assert run_id(text, _never) == RUN


@pytest.mark.parametrize("text", ["019a", "projects/p/runs/019a"])
def test_a_short_run_id_is_looked_up(text: str) -> None:
    assert run_id(text, _lookup) == RUN


@pytest.mark.parametrize("text", ["", "a/b", f"{RUN}/1"])
def test_what_is_no_run_is_refused(text: str) -> None:
    with pytest.raises(CommandRejected, match="names no run"):
        run_id(text, _never)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{RUN}/40", f"{RUN}/checkpoints/40"),
        ("019a/40", f"{RUN}/checkpoints/40"),
        (f"{RUN}/s40-e1-abc", f"{RUN}/checkpoints/s40-e1-abc"),
        (f"{RUN}/checkpoints/40", f"{RUN}/checkpoints/40"),
        (f"projects/p/runs/{RUN}/checkpoints/s40-e1-abc", f"{RUN}/checkpoints/s40-e1-abc"),
    ],
)
def test_checkpoints(text: str, expected: str) -> None:
    assert checkpoint_name(text, _lookup) == expected


@pytest.mark.parametrize("text", [RUN, "", "a/b/c", f"{RUN}/"])
def test_what_is_no_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(CommandRejected, match="names no checkpoint"):
        checkpoint_name(text, _never)
