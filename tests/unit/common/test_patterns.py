"""Expressions of users: linear time, or refused."""

from __future__ import annotations

import time

import pytest
from trackway_common.patterns import Pattern, PatternInvalid


def test_it_is_searched_anywhere():
    assert Pattern(r"lost mount \d+").found_in("12:00 lost mount 7 of 9")
    assert not Pattern(r"lost mount \d+").found_in("lost mount")


@pytest.mark.parametrize("expression", ["(", r"(a)\1", "a(?=b)", "a" * 1001, "(a{1000}){1000}", "[z-a]"])
def test_what_re2_does_not_take_is_refused(expression: str):
    with pytest.raises(PatternInvalid):
        Pattern(expression)


@pytest.mark.parametrize("expression", ["(a+)+$", "(a|aa)+$", "(.*)*x", "(a|b|ab)*c"])
def test_what_backtracks_for_ever_elsewhere_is_fast_here(expression: str):
    begun_s = time.process_time()
    Pattern(expression).found_in("a" * 4096 + "!")
    assert time.process_time() - begun_s < 0.5
