"""Lets through as many lines as anybody could read, and always the last ones: a flood must not slow the trainer."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

LINES_PER_S = 2_000.0
BURST = 10_000
"""Start-ups and tracebacks come in bursts."""
LAST_KEPT = 50


class LineGate(Generic[T]):
    """A token bucket that holds the newest of what it does not let through. Safe from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens = float(BURST)
        self._at_s = clock()
        self._held: deque[T] = deque()
        self.dropped = 0

    def take(self, line: T) -> tuple[T, ...]:
        """What is let through now that this line came: it, with what was held, or nothing."""
        with self._lock:
            now_s = self._clock()
            self._tokens = min(float(BURST), self._tokens + (now_s - self._at_s) * LINES_PER_S)
            self._at_s = now_s
            self._held.append(line)
            if self._tokens >= len(self._held):
                self._tokens -= len(self._held)
                return self._released()
            if len(self._held) > LAST_KEPT:
                self._held.popleft()
                self.dropped += 1
            return ()

    def release(self) -> tuple[T, ...]:
        """What is held: nothing more will come."""
        with self._lock:
            return self._released()

    def _released(self) -> tuple[T, ...]:
        released = tuple(self._held)
        self._held.clear()
        return released
