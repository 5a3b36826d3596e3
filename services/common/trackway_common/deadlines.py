"""When a run must be over."""

from __future__ import annotations

from datetime import datetime, timedelta

from trackway_common.events import Limits


def deadline_of(limits: Limits | None, submitted_at: datetime | None) -> datetime | None:
    """The run's deadline, written as a time or counted from its submission; None where it has none."""
    if limits is None:
        return None
    if limits.deadline is not None:
        return limits.deadline
    if limits.deadline_s is None or submitted_at is None:
        return None
    return submitted_at + timedelta(seconds=limits.deadline_s)
