"""`limits` and `numerics` of a run spec."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from trackway_common.events import Limits

from tests.unit.scheduler.specs import SPEC
from tests.unit.scheduler.specs import read as draft


def read(text: str) -> tuple[Limits | None, list[tuple[str, str]]]:
    read_so = draft(SPEC + text)
    return read_so.spec.limits, [(one.field, one.description) for one in read_so.violations]


def test_every_limit_is_read():
    limits, violations = read("limits: {wall_time_s: 3600, deadline: 7200, stall_s: 90, first_step_s: 0}\n")
    assert violations == []
    assert limits == Limits(wall_time_s=3600.0, deadline_s=7200.0, stall_s=90.0, first_step_s=0.0)


@pytest.mark.parametrize("written", ["2026-12-24T18:00:00Z", "2026-12-24T19:00:00+01:00"])
def test_a_deadline_may_be_a_time(written: str):
    limits, violations = read(f'limits: {{deadline: "{written}"}}\n')
    assert violations == []
    assert limits is not None
    assert (limits.deadline, limits.deadline_s) == (datetime(2026, 12, 24, 18, tzinfo=UTC), None)


def test_no_limits_is_none():
    assert read("") == (None, [])


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("limits: {wall_time_s: -1}", "limits.wall_time_s"),
        ("limits: {wall_time_s: soon}", "limits.wall_time_s"),
        ("limits: {wall_time_s: 1e12}", "limits.wall_time_s"),
        ("limits: {stall_s: 0.5}", "limits.stall_s"),
        ("limits: {first_step_s: -3}", "limits.first_step_s"),
        ('limits: {deadline: "2026-12-24T18:00:00"}', "limits.deadline"),
        ("limits: {deadline: tomorrow}", "limits.deadline"),
        ("limits: {deadline: [1]}", "limits.deadline"),
        ("limits: {walltime: 3}", "limits.walltime"),
        ("limits: 5", "limits"),
        ("numerics: {non_finite_loss: maybe}", "numerics.non_finite_loss"),
    ],
)
def test_what_is_wrong_is_named_with_its_field(text: str, field: str):
    _, violations = read(text + "\n")
    assert [name for name, _ in violations] == [field]


def test_a_loss_that_is_no_number_fails_the_attempt_unless_the_spec_says_otherwise():
    assert draft(SPEC).spec.non_finite_loss == "fail"
    assert draft(SPEC + "numerics: {non_finite_loss: ignore}\n").spec.non_finite_loss == "ignore"
