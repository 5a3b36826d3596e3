"""Canonical JSON and YAML 1.2 core, against the specifications' own examples."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.canonical import canonical_json, digest
from trackway_common.errors import CommandRejected
from trackway_common.yaml_core import load_yaml

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (333333333.33333329, "333333333.3333333"),
        (1e30, "1e+30"),
        (4.50, "4.5"),
        (2e-3, "0.002"),
        (0.000000000000000000000000001, "1e-27"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740991, "9007199254740991"),
        (295147905179352830000.0, "295147905179352830000"),
        (1e21, "1e+21"),
        (9.999999999999997e22, "9.999999999999997e+22"),
    ],
)
def test_numbers_are_written_as_rfc_8785_says(value, text):
    assert canonical_json(value).decode() == text


def test_keys_are_ordered_by_utf16_code_units():
    """RFC 8785 §3.2.3."""
    value = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    assert list(json.loads(canonical_json(value)).values()) == [2, 4, 6, 7, 1, 5, 3]


@given(json_values)
def test_it_reads_back_and_is_a_fixed_point(value):
    once = canonical_json(value)
    assert canonical_json(json.loads(once, parse_int=float)) == once


@pytest.mark.parametrize("bad", [2**53, float("nan"), float("inf"), {1: 2}, object(), "\ud800"])
def test_what_has_no_canonical_form_is_refused(bad):
    with pytest.raises(ValueError):
        canonical_json(bad)


def test_equal_values_have_equal_digests():
    assert digest({"b": 1.0, "a": [True]}) == digest({"a": [True], "b": 1})


def test_yaml_is_read_by_the_core_schema():
    text = b"rate: 1e-4\nanswer: NO\noctal: 0o17\nplain: 010\nhex: 0x1F\nnone: ~\nday: 2026-01-01\non: yes\n"
    assert load_yaml(text, name="f") == {
        "rate": 1e-4,
        "answer": "NO",
        "octal": 15,
        "plain": 10,
        "hex": 31,
        "none": None,
        "day": "2026-01-01",
        "on": "yes",
    }


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"a: 1\na: 2", "stands twice"),
        (b"a: .nan", "not a finite number"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a: [", "line 1"),
        (b"1: 2", "quote it"),
        (b"a: &x 1\nb: *x", "aliases"),
        (b"x" * (1 << 20) + b"y", "right file"),
        (b"!!python/object:os.system {}", "could not determine a constructor"),
    ],
)
def test_bad_yaml_is_refused_with_the_place(data, says):
    with pytest.raises(CommandRejected, match=says) as refused:
        load_yaml(data, name="config")
    assert refused.value.violations[0].field == "config"
