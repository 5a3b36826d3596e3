"""Where an attempt's time went. The parts add up to the time from placement to end exactly.

startup       placed → first step, without the restore; of a program that never reports one, → start of its ranks
restore       in ``restore()``, before the first step
productive    steps that a commit or a finished training kept
data_wait     waiting for data, inside what was kept
stall         blocked while checkpoints were captured, inside what was kept
lost          after the last kept capture: rolled back, whatever it was spent on
hang          STALLED or COLLECTIVE_TIMEOUT: the last progress of any rank → the order to stop
idle          the failure, or a finished training's last word → the attempt's end: the accelerators were still held
unattributed  inside what was kept, but not on the session's clocks

Marks come from facts, the parts inside what was kept from the session's clocks, which captures and the receipt carry.
Facts without clocks (a program without a session, a log of before) know stalls from their captures only; the rest of
what was kept counts as productive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from trackway_common.events import CausalRole, CheckpointStarted, Evidence, PhaseSeconds, TerminationReason
from trackway_common.history.wording import time_of_ms

KEEPS_ALL = frozenset({TerminationReason.COMPLETED, TerminationReason.EARLY_STOPPED})
"""Reasons after which the final state is kept, so no step is lost."""
HANGS = frozenset({TerminationReason.STALLED, TerminationReason.COLLECTIVE_TIMEOUT})
"""Reasons that mean that nothing moved for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What an attempt said of itself, for the split."""

    placed_at: datetime
    ranks_started_at: datetime | None = None
    first_step_at: datetime | None = None
    failed_at: datetime | None = None
    """When the first initiating evidence was observed."""
    stopping_at: datetime | None = None
    last_progress_at: datetime | None = None
    """Newest word of any rank's session."""
    ended_at: datetime
    reason: TerminationReason | None = None
    """By its agent's own account."""
    phases: PhaseSeconds | None = None
    """The session's clocks at their last word."""

    @property
    def keeps_all(self) -> bool:
        """A finished training: its final state holds every step."""
        return self.reason in KEEPS_ALL

    @property
    def hung(self) -> bool:
        """It ended because nothing moved, and when something last moved is known."""
        return self.reason in HANGS and self.last_progress_at is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondsColumns:
    """The split; zeros while the attempt runs, because what a later commit keeps is not known yet."""

    wall_seconds: float = 0.0
    startup_seconds: float = 0.0
    restore_seconds: float = 0.0
    productive_seconds: float = 0.0
    data_wait_seconds: float = 0.0
    stall_seconds: float = 0.0
    lost_seconds: float = 0.0
    hang_seconds: float = 0.0
    idle_seconds: float = 0.0
    unattributed_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marks:
    """Points in time in their order, so that the stretches between them are the whole."""

    placed: datetime
    begin: datetime
    """End of the startup."""
    kept: datetime
    """Until here a commit or the final state kept what was done."""
    worked: datetime
    """Until here something moved."""
    stopped: datetime
    """End of a hang; without one the same as before."""
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """The stretch that was kept, by what it was spent on."""

    productive_s: float
    data_wait_s: float = 0.0
    stall_s: float = 0.0
    unattributed_s: float = 0.0


def split_seconds(
    span: Span, captures: Sequence[CheckpointStarted], kept: Sequence[CheckpointStarted]
) -> SecondsColumns:
    """Split an ended attempt's time.

    Args:
        span: its marks.
        captures: all captures of the attempt.
        kept: those whose checkpoint was committed, and neither quarantined nor rolled back since.
    """
    last = max(kept, key=_kept_order, default=None)
    marks = _marks(span, captures, last)
    newest = last.phases if last else None
    clocks = span.phases if span.keeps_all else newest
    parts = _kept_parts(marks, captures, clocks if span.first_step_at else None)
    startup_s = _seconds(marks.placed, marks.begin)
    known = span.phases or newest
    restore_s = min(startup_s, known.restore_seconds) if known else 0.0
    return SecondsColumns(
        wall_seconds=_seconds(marks.placed, marks.end),
        startup_seconds=startup_s - restore_s,
        restore_seconds=restore_s,
        productive_seconds=parts.productive_s,
        data_wait_seconds=parts.data_wait_s,
        stall_seconds=parts.stall_s,
        lost_seconds=_seconds(marks.kept, marks.worked),
        hang_seconds=_seconds(marks.worked, marks.stopped),
        idle_seconds=_seconds(marks.stopped, marks.end),
        unattributed_seconds=parts.unattributed_s,
    )


def failed_at(evidence: Sequence[Evidence]) -> datetime | None:
    """When the first initiating evidence was observed; None where none carries a time."""
    times = [e.observed_at_ms for e in evidence if e.role is CausalRole.INITIATING and e.observed_at_ms]
    return time_of_ms(min(times)) if times else None


def captured_at(capture: CheckpointStarted) -> datetime:
    """When the capture was taken: by its session's own word where it has one, else when its agent heard of it."""
    return capture.phases.measured_at if capture.phases else capture.started_at


def _marks(span: Span, captures: Sequence[CheckpointStarted], last: CheckpointStarted | None) -> _Marks:
    end = max(span.ended_at, span.placed_at)
    began_at = _began_at(span, captures, last)
    begin = _clamp(began_at or span.placed_at, span.placed_at, end)
    stopped = _clamp(span.stopping_at or span.failed_at or end, begin, end)
    worked = _worked_until(span, begin, stopped if span.hung else end)
    if began_at is None:
        # Nothing was ever worked on: all of it was the startup.
        begin = kept = worked
    else:
        kept = worked if span.keeps_all else _clamp(captured_at(last) if last else begin, begin, worked)
    stopped = stopped if span.hung else worked
    return _Marks(placed=span.placed_at, begin=begin, kept=kept, worked=worked, stopped=stopped, end=end)


def _began_at(span: Span, captures: Sequence[CheckpointStarted], last: CheckpointStarted | None) -> datetime | None:
    """End of the startup; None where it never ended.

    A program with a session that came to no step was starting all the time. One without a session reports no steps.
    """
    if span.first_step_at:
        return span.first_step_at
    has_session = span.phases is not None or any(capture.phases for capture in captures)
    return None if has_session and not span.keeps_all and last is None else span.ranks_started_at


def _worked_until(span: Span, begin: datetime, latest: datetime) -> datetime:
    progress_counts = span.hung or (span.keeps_all and span.first_step_at is not None)
    last_word = (span.last_progress_at if progress_counts else None) or span.failed_at
    return _clamp(last_word or latest, begin, latest)


def _kept_parts(marks: _Marks, captures: Sequence[CheckpointStarted], clocks: PhaseSeconds | None) -> _Kept:
    kept_s = _seconds(marks.begin, marks.kept)
    if clocks is None:
        blocked_s = sum(c.blocked_seconds for c in captures if c.started_at < marks.kept)
        stall_s = min(kept_s, blocked_s)
        return _Kept(productive_s=kept_s - stall_s, stall_s=stall_s)
    data_wait_s = min(kept_s, clocks.data_wait_seconds)
    stall_s = min(kept_s - data_wait_s, clocks.checkpoint_stall_seconds)
    productive_s = min(kept_s - data_wait_s - stall_s, clocks.step_seconds)
    return _Kept(
        productive_s=productive_s,
        data_wait_s=data_wait_s,
        stall_s=stall_s,
        unattributed_s=kept_s - data_wait_s - stall_s - productive_s,
    )


def _kept_order(capture: CheckpointStarted) -> tuple[datetime, int]:
    return captured_at(capture), capture.step


def _seconds(start: datetime, end: datetime) -> float:
    return (end - start).total_seconds()


def _clamp(at: datetime, low: datetime, high: datetime) -> datetime:
    return min(max(at, low), high)
