"""When a trainer is without progress for too long."""

from __future__ import annotations

import pytest
from trackway_trainer_agent.worker.progress import (
    BUSY_STALL_OF_MANY_S,
    BUSY_STALL_S,
    FIRST_STEP_S,
    STALL_S,
    Progress,
)
from trackway_trainer_agent.worker.rank_spec import Patience


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def watch() -> Watch:
    return Watch()


def begun(watch: Watch, **patience: float) -> Progress:
    progress = Progress(watch)
    progress.begin(Patience(**patience))
    return progress


def stepping(watch: Watch, interval_s: float, steps: int = 5, **patience: float) -> Progress:
    progress = begun(watch, **patience)
    progress.spoke()
    for _ in range(steps):
        watch.now_s += interval_s
        progress.stepped()
    return progress


@pytest.mark.parametrize(
    ("interval_s", "patience", "limit_s"),
    [
        (0.1, {}, STALL_S),
        (60.0, {}, 1200.0),
        (0.1, {"stall_s": 5.0}, 5.0),
        (60.0, {"stall_s": 5.0}, 5.0),
    ],
)
def test_steps_may_be_late_by_so_much(watch: Watch, interval_s: float, patience: dict[str, float], limit_s: float):
    progress = stepping(watch, interval_s, **patience)
    watch.now_s += limit_s
    assert progress.overdue() is None
    watch.now_s += 1
    late = progress.overdue()
    assert late is not None
    assert (late.limit_s, late.silent_s, late.stepped) == (limit_s, pytest.approx(limit_s + 1), True)


def test_by_default_one_that_prints_or_computes_has_longer(watch: Watch):
    progress = stepping(watch, 0.1)
    for _ in range(17):
        watch.now_s += 100
        progress.active()
        assert progress.overdue() is None
    watch.now_s += 101
    progress.active()
    late = progress.overdue()
    assert late is not None
    assert (late.limit_s, late.silent_s) == (BUSY_STALL_S, pytest.approx(1801))


NCCL_WATCHDOG_S = 600.0
"""torch.distributed's default for NCCL."""


def test_one_of_many_that_is_busy_is_found_before_the_watchdog_of_nccl_ends_it(watch: Watch):
    progress = Progress(watch)
    progress.begin(Patience(), world_size=2)
    progress.spoke()
    progress.stepped()
    for _ in range(5):
        watch.now_s += 100
        progress.active()
        assert progress.overdue() is None
    watch.now_s += 50
    progress.active()
    late = progress.overdue()
    assert late is not None
    assert late.limit_s == BUSY_STALL_OF_MANY_S < NCCL_WATCHDOG_S


def test_a_checkpoint_is_progress_too(watch: Watch):
    progress = stepping(watch, 0.1, stall_s=5.0)
    watch.now_s += 4
    progress.spoke()
    watch.now_s += 4
    assert progress.overdue() is None


def test_printing_is_no_progress_of_a_program_that_reports_steps(watch: Watch):
    progress = stepping(watch, 0.1, stall_s=5.0)
    watch.now_s += 4
    progress.active()
    watch.now_s += 4
    assert progress.overdue() is not None


def test_waiting_for_the_actor_is_not_the_trainers_fault(watch: Watch):
    progress = stepping(watch, 0.1, stall_s=5.0)
    progress.waiting_for_us(1)
    watch.now_s += 1e6
    assert progress.overdue() is None
    progress.waiting_for_us(-1)
    watch.now_s += 4
    assert progress.overdue() is None
    watch.now_s += 4
    assert progress.overdue() is not None


@pytest.mark.parametrize(("patience", "limit_s"), [({}, FIRST_STEP_S), ({"first_step_s": 7.0}, 7.0)])
def test_the_first_step_has_a_limit_of_its_own(watch: Watch, patience: dict[str, float], limit_s: float):
    progress = begun(watch, stall_s=1.0, **patience)
    progress.spoke()
    watch.now_s += limit_s / 2
    progress.spoke()
    watch.now_s += limit_s / 2
    assert progress.overdue() is None
    watch.now_s += 1
    late = progress.overdue()
    assert late is not None
    assert (late.limit_s, late.stepped) == (limit_s, False)


@pytest.mark.parametrize("patience", [{}, {"stall_s": 0.0}])
def test_of_a_plain_program_nothing_is_expected_unless_asked(watch: Watch, patience: dict[str, float]):
    progress = begun(watch, **patience)
    watch.now_s += 1e9
    assert progress.overdue() is None


def test_a_plain_program_that_is_silent_for_as_long_as_the_spec_allows(watch: Watch):
    progress = begun(watch, stall_s=5.0)
    watch.now_s += 4
    progress.active()
    watch.now_s += 4
    assert progress.overdue() is None
    watch.now_s += 2
    assert progress.overdue() is not None


def test_a_first_step_that_the_spec_asks_for_is_expected_of_any_program(watch: Watch):
    progress = begun(watch, first_step_s=5.0)
    watch.now_s += 4
    progress.active()
    watch.now_s += 2
    assert progress.overdue() is not None


def test_what_a_program_does_after_its_session_has_no_steps(watch: Watch):
    progress = stepping(watch, 0.1)
    progress.left()
    watch.now_s += 1e6
    assert progress.overdue() is None


@pytest.mark.parametrize("patience", [{"stall_s": 0.0}, {"stall_s": 0.0, "first_step_s": 0.0}])
def test_zero_means_for_ever(watch: Watch, patience: dict[str, float]):
    progress = stepping(watch, 0.1, **patience)
    watch.now_s += 1e9
    assert progress.overdue() is None


def test_nothing_is_expected_before_the_program_runs(watch: Watch):
    progress = Progress(watch)
    watch.now_s += 1e9
    assert progress.overdue() is None
