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
"""Default for a trainer that does nothing at all: no step, no line, no CPU."""
BUSY_STALL_S = 1800.0
"""Default for one that prints or computes but takes no step: it may be evaluating."""
BUSY_STALL_OF_MANY_S = 540.0
"""The same where there are several ranks: a rank that waits for a device is busy too, and NCCL's watchdog ends it after
600 s, which tells less than stacks do. A longer evaluation needs ``limits.stall_s``."""
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
        self._busy_stall_s = BUSY_STALL_S
        self._begun_at: float | None = None
        self._signed_at = self._active_at = 0.0
        self._stepped_at: float | None = None
        self._intervals: deque[float] = deque(maxlen=STEPS_REMEMBERED)
        self._connected = False
        self._waits_for_us = 0

    def begin(self, patience: Patience, *, world_size: int = 1) -> None:
        """The trainer runs."""
        with self._lock:
            self._busy_stall_s = BUSY_STALL_S if world_size == 1 else BUSY_STALL_OF_MANY_S
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
        """It printed or computed: of a program that reports steps that is little."""
        with self._lock:
            self._active_at = self._clock()

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
            now, stepped = self._clock(), self._stepped_at is not None
            late = [(now - since_s, limit_s) for since_s, limit_s in self._limits(self._begun_at) if limit_s > 0]
            over = next(((silent_s, limit_s) for silent_s, limit_s in late if silent_s > limit_s), None)
            return None if over is None else Overdue(silent_s=over[0], limit_s=over[1], stepped=stepped)

    def _limits(self, begun_at: float) -> tuple[tuple[float, float], ...]:
        """Moments from which it counts, each with how long it may take from there; 0 is for ever."""
        stall_s, first_step_s = self._patience.stall_s, self._patience.first_step_s
        active_at = max(self._signed_at, self._active_at)
        if self._expects_steps():
            return ((begun_at, FIRST_STEP_S if first_step_s is None else first_step_s),)
        if not self._connected:
            return ((active_at, stall_s or 0.0),)
        if stall_s is not None:
            return ((self._signed_at, stall_s),)
        slow_s = STALL_STEPS * statistics.median(self._intervals) if self._intervals else 0.0
        return ((active_at, max(STALL_S, slow_s)), (self._signed_at, max(self._busy_stall_s, slow_s)))

    def _expects_steps(self) -> bool:
        """A first step is expected of a program that uses the SDK, or whose spec gives it a limit."""
        return self._stepped_at is None and (self._connected or self._patience.first_step_s is not None)
