"""How long an attempt may take, as its run's spec says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from trackway_common.clock import Clock
from trackway_common.events import TerminationReason

from trackway_trainer_agent.domain.orders import StopOrder

LOOK_EVERY_S = 1.0
"""A deadline is a wall-clock time; the wall clock may be set while we wait."""


async def stop_at_deadline(deadline: datetime, clock: Clock, stop: Callable[[StopOrder], None]) -> None:
    """Order the stop once the deadline is there."""
    while (left_s := (deadline - clock.now()).total_seconds()) > 0:
        await clock.sleep(min(left_s, LOOK_EVERY_S))
    why = f"the run's deadline {deadline.isoformat(timespec='seconds')} has passed"
    stop(StopOrder(reason=TerminationReason.DEADLINE_EXCEEDED, why=why))


async def stop_after_wall_time(
    granted_at: datetime, wall_time_s: float, clock: Clock, stop: Callable[[StopOrder], None]
) -> None:
    """Order the stop once the attempt has held its resources for so long."""
    over_at = granted_at + timedelta(seconds=wall_time_s)
    while (left_s := (over_at - clock.now()).total_seconds()) > 0:
        await clock.sleep(min(left_s, LOOK_EVERY_S))
    why = f"the attempt's wall time of {wall_time_s:g} s is over"
    stop(StopOrder(reason=TerminationReason.WALLTIME, why=why))
