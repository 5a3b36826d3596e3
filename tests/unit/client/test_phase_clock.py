"""A session's clock tells training from waiting, and its parts add up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway.training.phase_clock import Phase, PhaseClock
from trackway_common.clock import ManualClock


def clock_of(time: ManualClock) -> PhaseClock:
    return PhaseClock(time.monotonic)


def spend(time: ManualClock, clock: PhaseClock, phase: Phase | None, seconds: float) -> None:
    if phase is None:
        time.advance(seconds)
        return
    with clock.during(phase):
        time.advance(seconds)


def test_time_before_the_first_step_is_startup_but_for_the_restore() -> None:
    time = ManualClock()
    clock = clock_of(time)
    for phase in (None, *Phase):
        spend(time, clock, phase, 2.0)
    clock.step()
    read = clock.read()
    assert read.restore_seconds == 2.0
    assert (read.data_wait_seconds, read.checkpoint_stall_seconds, read.step_seconds) == (0.0, 0.0, 0.0)


def test_time_after_the_first_step_is_told_apart() -> None:
    time = ManualClock()
    clock = clock_of(time)
    clock.step()
    spend(time, clock, Phase.DATA_WAIT, 1.0)
    spend(time, clock, None, 5.0)
    spend(time, clock, Phase.CHECKPOINT_STALL, 0.5)
    clock.step()
    read = clock.read()
    assert (read.data_wait_seconds, read.step_seconds, read.checkpoint_stall_seconds) == (1.0, 5.0, 0.5)


def test_a_phase_in_progress_counts_already() -> None:
    time = ManualClock()
    clock = clock_of(time)
    clock.step()
    with clock.during(Phase.CHECKPOINT_STALL):
        time.advance(0.75)
        assert clock.read().checkpoint_stall_seconds == 0.75
    assert clock.read().checkpoint_stall_seconds == 0.75


def test_a_wait_inside_another_phase_is_that_phases() -> None:
    time = ManualClock()
    clock = clock_of(time)
    clock.step()
    with clock.during(Phase.CHECKPOINT_STALL):
        spend(time, clock, Phase.DATA_WAIT, 1.0)
    assert clock.read().data_wait_seconds == 0.0
    assert clock.read().checkpoint_stall_seconds == 1.0


def test_the_wait_for_each_batch_counts_and_the_work_between_does_not() -> None:
    time = ManualClock()
    clock = clock_of(time)
    clock.step()

    def batches() -> Iterator[int]:
        for number in range(3):
            time.advance(0.25)
            yield number

    seen = []
    for number in clock.each(batches()):
        seen.append(number)
        time.advance(1.0)
    assert seen == [0, 1, 2]
    assert clock.read().data_wait_seconds == 0.75
    assert clock.read().step_seconds == 3.0


def test_what_a_batch_raises_comes_through() -> None:
    def batches() -> Iterator[int]:
        yield 1
        raise OSError("the shard is gone")

    clock = PhaseClock()
    with pytest.raises(OSError, match="the shard is gone"):
        list(clock.each(batches()))
    with clock.during(Phase.DATA_WAIT):
        pass


@given(
    before=st.lists(st.tuples(st.none() | st.sampled_from(Phase), st.floats(0, 100)), max_size=5),
    after=st.lists(st.tuples(st.none() | st.sampled_from(Phase), st.floats(0, 100)), max_size=8),
)
def test_the_parts_are_never_negative_and_add_up_to_the_time_since_the_first_step(
    before: list[tuple[Phase | None, float]], after: list[tuple[Phase | None, float]]
) -> None:
    time = ManualClock()
    clock = clock_of(time)
    for phase, seconds in before:
        spend(time, clock, phase, seconds)
    clock.step()
    for phase, seconds in after:
        spend(time, clock, phase, seconds)
    read = clock.read()
    parts = (read.data_wait_seconds, read.checkpoint_stall_seconds, read.step_seconds)
    assert all(part >= 0 for part in (read.restore_seconds, *parts))
    assert sum(parts) == pytest.approx(sum(seconds for _, seconds in after), abs=1e-6)
