"""Splits by the hash of the path: stable, independent of order, proportional."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway.client.splits import parse_splits
from trackway_common.errors import CommandRejected

PATHS = st.lists(st.text(min_size=1, max_size=20).filter(lambda text: text.isprintable()), unique=True)


@given(PATHS, st.permutations(["heldout=0.1", "test=0.25", "dev=1/3"]))
def test_a_file_keeps_its_split_whatever_stands_beside_it(paths: list[str], texts: list[str]) -> None:
    rule, again = parse_splits(["heldout=0.1", "test=0.25", "dev=1/3"]), parse_splits(texts)
    assert [rule.split_of(path) for path in paths] == [again.split_of(path) for path in paths]


def test_known_paths_fall_where_they_always_did() -> None:
    rule = parse_splits(["heldout=0.5"])
    found = {path: rule.split_of(path) for path in ("a.py", "b.py", "c.py", "json/decoder.py", "ä.txt")}
    assert found == {
        "a.py": "train", "b.py": "heldout", "c.py": "train", "json/decoder.py": "heldout", "ä.txt": "train",
    }  # fmt: skip


def test_shares_are_about_what_was_asked() -> None:
    rule = parse_splits(["heldout=0.1", "test=0.2"])
    found = [rule.split_of(f"module_{i}.py") for i in range(5000)]
    assert found.count("heldout") == pytest.approx(500, rel=0.15)
    assert found.count("test") == pytest.approx(1000, rel=0.15)


def test_without_splits_everything_is_train() -> None:
    assert parse_splits([]).split_of("a") == "train"


def test_train_may_be_written_when_nothing_is_left() -> None:
    rule = parse_splits(["train=0.9", "test=0.1"])
    assert {rule.split_of(str(i)) for i in range(200)} == {"train", "test"}


@pytest.mark.parametrize(
    "texts",
    [["heldout"], ["heldout=x"], ["heldout=0"], ["heldout=-0.1"], ["heldout=1.1"], ["=0.5"], ["a b=0.5"], ["a=1/0"],
     ["a=0.6", "b=0.5"], ["a=0.1", "a=0.2"], ["train=0.5"]],
)  # fmt: skip
def test_wrong_splits_are_refused_with_the_field(texts: list[str]) -> None:
    with pytest.raises(CommandRejected) as refused:
        parse_splits(texts)
    assert refused.value.violations[0].field == "split"
