"""Whether a trainer still gets anywhere: its signs of life against the longest time that it may be without one."""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable

from trackway_trainer_agent.worker.rank_spec import Patience
from trackway_trainer_agent.worker.records import Overdue

STALL_S = 300.0
"""Default; below torch's own limits for collectives (600 s with NCCL), whose end tells less than stacks do."""
STALL_STEPS = 20
"""Default for slow steps: so many median ones."""
FIRST_STEP_S = 1800.0
"""Default; compiling and loading before the first step may take long."""
STEPS_REMEMBERED = 64
BUSY_PERCENT = 1.0
"""Less CPU than this is idling, not working."""


class Progress:
    """Of one trainer. Safe from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._patience = Patience()
        self._begun_at: float | None = None
        self._signed_at = 0.0
        self._stepped_at: float | None = None
        self._intervals: deque[float] = deque(maxlen=STEPS_REMEMBERED)
        self._connected = False
        self._waits_for_us = 0

    def begin(self, patience: Patience) -> None:
        """The trainer runs."""
        with self._lock:
            self._patience, self._begun_at, self._signed_at = patience, self._clock(), self._clock()

    def stepped(self) -> None:
        """A step was finished."""
        with self._lock:
            now = self._clock()
            if self._stepped_at is not None:
                self._intervals.append(now - self._stepped_at)
            self._stepped_at = self._signed_at = now

    def spoke(self) -> None:
        """The SDK said something: it is at work between two steps."""
        with self._lock:
            self._connected, self._signed_at = True, self._clock()

    def left(self) -> None:
        """The session is over; what the program does after it has no steps."""
        with self._lock:
            self._connected, self._signed_at = False, self._clock()

    def active(self) -> None:
        """It printed or computed; says something only of a program that reports no steps."""
        with self._lock:
            if not self._connected:
                self._signed_at = self._clock()

    def waiting_for_us(self, count: int) -> None:
        """Add ``count`` to the calls in which the trainer waits for its actor: no fault of its own."""
        with self._lock:
            self._waits_for_us += count
            self._signed_at = self._clock()

    def overdue(self) -> Overdue | None:
        """How long it has been without progress, when that is longer than it may be."""
        with self._lock:
            if self._begun_at is None or self._waits_for_us:
                return None
            stepping = self._connected and self._stepped_at is not None
            limit_s = self._limit_s(stepping=stepping)
            silent_s = self._clock() - (self._signed_at if stepping or not self._expects_steps() else self._begun_at)
            if limit_s is None or silent_s <= limit_s:
                return None
            return Overdue(silent_s=silent_s, limit_s=limit_s, stepped=self._stepped_at is not None)

    def _expects_steps(self) -> bool:
        """A first step is expected of a program that uses the SDK, or whose spec gives it a limit."""
        return self._stepped_at is None and (self._connected or self._patience.first_step_s is not None)

    def _limit_s(self, *, stepping: bool) -> float | None:
        stall_s, first_step_s = self._patience.stall_s, self._patience.first_step_s
        if self._expects_steps():
            return _unless_zero(FIRST_STEP_S if first_step_s is None else first_step_s)
        if not stepping:
            return _unless_zero(stall_s or 0.0)
        median_s = statistics.median(self._intervals) if self._intervals else 0.0
        return _unless_zero(max(STALL_S, STALL_STEPS * median_s) if stall_s is None else stall_s)


def _unless_zero(limit_s: float) -> float | None:
    return limit_s if limit_s > 0 else None
