"""Where an attempt's time went. The parts add up to the time from placement to end exactly.

startup      placed → first step, or the start of the ranks where no step was ever reported
productive   stepping that a commit or a finished training kept, without the stalls
stall        training blocked while checkpoints were captured, inside what was kept
lost         stepping after the last kept capture: rolled back
idle         the failure → the attempt's end: nothing ran, the accelerators were still held
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from trackway_common.events import CausalRole, CheckpointStarted, Evidence, TerminationReason
from trackway_common.history.wording import time_of_ms

KEEPS_ALL = frozenset({TerminationReason.COMPLETED, TerminationReason.EARLY_STOPPED})
"""Reasons after which the final state is kept, so no step is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The marks that the split is computed from."""

    placed_at: datetime
    work_began_at: datetime | None
    """First step, or the start of the ranks of a program that reports none."""
    failed_at: datetime | None
    """When the first initiating evidence was observed."""
    ended_at: datetime
    keeps_all: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondsColumns:
    """The split; zeros while the attempt runs, because what a later commit keeps is not known yet."""

    wall_seconds: float = 0.0
    startup_seconds: float = 0.0
    productive_seconds: float = 0.0
    stall_seconds: float = 0.0
    lost_seconds: float = 0.0
    idle_seconds: float = 0.0


def split_seconds(
    span: Span, captures: Sequence[CheckpointStarted], kept: Sequence[CheckpointStarted]
) -> SecondsColumns:
    """Split an ended attempt's time.

    Args:
        span: its marks.
        captures: all captures of the attempt.
        kept: those whose checkpoint was committed and not quarantined since.
    """
    end = max(span.ended_at, span.placed_at)
    begin = _clamp(span.work_began_at or end, span.placed_at, end)
    died = _clamp(span.failed_at or end, begin if span.work_began_at else span.placed_at, end)
    if span.work_began_at is None:
        wall_s, startup_s = _seconds(span.placed_at, end), _seconds(span.placed_at, died)
        return SecondsColumns(wall_seconds=wall_s, startup_seconds=startup_s, idle_seconds=_seconds(died, end))
    last_kept = died if span.keeps_all else max((c.started_at for c in kept), default=begin)
    kept_until = _clamp(last_kept, begin, died)
    kept_s = _seconds(begin, kept_until)
    stall_s = min(kept_s, sum(c.blocked_seconds for c in captures if c.started_at < kept_until))
    return SecondsColumns(
        wall_seconds=_seconds(span.placed_at, end),
        startup_seconds=_seconds(span.placed_at, begin),
        productive_seconds=kept_s - stall_s,
        stall_seconds=stall_s,
        lost_seconds=_seconds(kept_until, died),
        idle_seconds=_seconds(died, end),
    )


def failed_at(evidence: Sequence[Evidence]) -> datetime | None:
    """When the first initiating evidence was observed; None where none carries a time."""
    times = [e.observed_at_ms for e in evidence if e.role is CausalRole.INITIATING and e.observed_at_ms]
    return time_of_ms(min(times)) if times else None


def _seconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()


def _clamp(at: datetime, low: datetime, high: datetime) -> datetime:
    return min(max(at, low), high)
