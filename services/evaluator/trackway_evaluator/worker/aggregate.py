"""Rows → metrics with standard errors, for the whole task and for each slice. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from trackway_common.evaluation_pack import MetricSpec
from trackway_common.events import TaskMetric

from trackway_evaluator.worker.sample import Row

MAX_SLICES = 200
"""Per slice field; more is an identifier, not a slice, and would not fit into a fact."""


def aggregate(specs: Sequence[MetricSpec], rows: Sequence[Row], slice_names: Sequence[str]) -> tuple[TaskMetric, ...]:
    """Metrics over the rows that were scored; how many were not stands in the task's result."""
    found: list[TaskMetric] = []
    for spec in specs:
        scored = [row for row in rows if spec.name in row.metrics]
        found.append(_metric(spec, scored, ""))
        for label, group in _groups(scored, slice_names):
            found.append(_metric(spec, group, label))
    return tuple(found)


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> tuple[float, float | None]:
    """Mean of values by weight, with its standard error; no error below two values.

    Source: linearised variance of a ratio estimator (Cochran, Sampling Techniques, 1977, §6.4);
    with equal weights it is the standard error of the mean, s / √n.
    """
    total = math.fsum(weights)
    if not values or total <= 0:
        return 0.0, None
    mean = math.fsum(v * w for v, w in zip(values, weights, strict=True)) / total
    count = len(values)
    if count < 2:
        return mean, None
    squares = math.fsum((w * (v - mean)) ** 2 for v, w in zip(values, weights, strict=True))
    return mean, math.sqrt(squares * count / (count - 1)) / total


def _metric(spec: MetricSpec, rows: Sequence[Row], label: str) -> TaskMetric:
    weights = [row.weight for row in rows]
    value, stderr = weighted_mean([row.metrics[spec.name] for row in rows], weights)
    equal = len(set(weights)) <= 1
    return TaskMetric(
        name=spec.name,
        value=value,
        stderr=stderr,
        stderr_method="" if stderr is None else "sem" if equal else "ratio",
        slice=label,
        higher_is_better=spec.higher_is_better,
        primary=spec.primary and not label,
        samples=len(rows),
    )


def _groups(rows: Sequence[Row], slice_names: Iterable[str]) -> Iterator[tuple[str, list[Row]]]:
    for name in slice_names:
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(row.slices.get(name, ""), []).append(row)
        for value in sorted(groups)[:MAX_SLICES]:
            yield f"{name}={value}", groups[value]
