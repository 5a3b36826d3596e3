"""Names and keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.checkpoint import layout
from trackway_common.checkpoint.layout import CheckpointName, parse_name, parse_path, parse_slot_file, slot_file
from trackway_common.errors import CommandRejected

names = st.builds(
    CheckpointName,
    step=st.integers(0, 10**15 - 1),
    epoch=st.integers(0, 10**9 - 1),
    nonce=st.from_regex(r"[0-9a-z]{4,32}", fullmatch=True),
)


@given(names)
def test_a_name_is_read_back(name):
    assert parse_name(str(name)) == name
    assert parse_path(name.path) == name


def test_names_look_as_documented():
    name = CheckpointName(step=1200, epoch=4, nonce="1a2b3c4d")
    assert str(name) == "s000001200-e0004-1a2b3c4d"
    assert layout.receipt_key("r", name, 3) == "checkpoints/r/data/s000001200-e0004-1a2b3c4d/rank/r00003.json"
    assert layout.manifest_key("r", name) == "checkpoints/r/data/s000001200-e0004-1a2b3c4d/manifest.json"
    assert layout.log_key("r", 42) == "checkpoints/r/log/00000000000000000042.json"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s1-e1-abcd",
        "s0000000001-e0001-abcd",
        "s000000001-e00001-abcd",
        "s000000001-e0001-ABCD",
        "s000000001-e0001-",
        "../s000000001-e0001-abcd",
        "s000000001-e0001-abcd/..",
        "s000000001-e0001-abcd\n",
    ],
)
def test_other_names_are_refused(text):
    with pytest.raises(CommandRejected, match="names no checkpoint"):
        parse_name(text)


@pytest.mark.parametrize("path", ["s000000001-e0001-abcd", "log/s000000001-e0001-abcd", "data/../x", "/data/x"])
def test_other_paths_are_refused(path):
    with pytest.raises(CommandRejected):
        parse_path(path)


@given(st.integers(1, 10**19), st.integers(1, 10**19))
def test_slot_files_order_as_slots(a, b):
    assert (slot_file(a) < slot_file(b)) == (a < b)
    assert parse_slot_file(slot_file(a)) == a


def test_other_files_of_the_log_are_no_slots():
    assert [parse_slot_file(name) for name in ("hint", "1.json", ".t-x", "00000000000000000001.json.bak")] == [None] * 4


def test_the_hint_sorts_behind_every_entry():
    assert slot_file(10**19) < "hint"
