"""What a trainer says of its time is the user's word: it is read only when it is a time."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from trackway_common.rank_protocol.phases import Phases, read_moment_ms, read_phases


def test_what_was_written_is_read() -> None:
    phases = Phases(restore_seconds=1.5, data_wait_seconds=2, checkpoint_stall_seconds=0.25, step_seconds=40.0)
    assert read_phases(asdict(phases)) == phases
    assert read_phases({}) == Phases()


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), 1e12, "3", None, True])
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="step_seconds"):
        read_phases({"step_seconds": value})


@pytest.mark.parametrize("value", [-1, 10**30, 1.5, "0", None, True])
def test_what_is_no_moment_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="at_ms"):
        read_moment_ms(value)


def test_an_unknown_phase_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="'idle'"):
        read_phases({"idle": 1.0})
