"""Means, standard errors and slices."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.evaluation_pack import MetricSpec
from trackway_evaluator.worker.aggregate import aggregate, weighted_mean
from trackway_evaluator.worker.sample import Row

ACCURACY = MetricSpec(name="accuracy", higher_is_better=True, primary=True)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50))
def test_equal_weights_give_the_standard_error_of_the_mean(values: list[float]) -> None:
    mean, stderr = weighted_mean(values, [1.0] * len(values))
    assert mean == pytest.approx(statistics.fmean(values), abs=1e-6)
    assert stderr is not None
    assert stderr == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), rel=1e-6, abs=1e-6)


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0.1, 100)), min_size=2, max_size=30))
def test_weights_are_shares(pairs: list[tuple[float, float]]) -> None:
    values, weights = [v for v, _ in pairs], [w for _, w in pairs]
    mean, stderr = weighted_mean(values, weights)
    assert mean == pytest.approx(sum(v * w for v, w in pairs) / sum(weights))
    scaled_mean, scaled_stderr = weighted_mean(values, [w * 3 for w in weights])
    assert (scaled_mean, scaled_stderr) == (pytest.approx(mean), pytest.approx(stderr))


def test_no_error_below_two_values() -> None:
    assert weighted_mean([2.0], [5.0]) == (2.0, None)
    assert weighted_mean([], []) == (0.0, None)


def test_slices_come_after_the_whole_and_only_it_is_primary() -> None:
    rows = [
        Row(id=str(i), metrics={"accuracy": float(i > 0)}, slices={"label": "a" if i < 2 else "b"}) for i in range(4)
    ]
    whole, a, b = aggregate((ACCURACY,), rows, ("label",))
    assert (whole.value, whole.slice, whole.primary, whole.samples) == (0.75, "", True, 4)
    assert (a.value, a.slice, a.primary, a.samples) == (0.5, "label=a", False, 2)
    assert (b.value, b.stderr) == (1.0, 0.0)


def test_what_was_not_scored_is_in_no_mean() -> None:
    rows = [Row(id="1", metrics={"accuracy": 1.0}), Row(id="2", metrics={}, error="lost")]
    [whole] = aggregate((ACCURACY,), rows, ())
    assert (whole.value, whole.samples, whole.stderr, whole.stderr_method) == (1.0, 1, None, "")


def test_method_says_which_formula() -> None:
    rows = [Row(id=str(i), metrics={"accuracy": float(i)}, weight=float(i + 1)) for i in range(3)]
    [whole] = aggregate((ACCURACY,), rows, ())
    assert whole.stderr_method == "ratio"
