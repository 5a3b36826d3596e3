"""Time as a port, so that no decision reads a wall clock and no test sleeps."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time for records, monotonic time for durations."""

    def now(self) -> datetime:
        """Wall-clock time, UTC, for people and records; never for ordering."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow, for deadlines and durations."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; a manual clock returns when it was advanced that far."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class ManualClock:
    """A clock that moves only when a test says so."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._elapsed_s = 0.0
        self._waiting: list[tuple[float, asyncio.Event]] = []

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed_s

    async def sleep(self, seconds: float) -> None:
        due = asyncio.Event()
        self._waiting.append((self._elapsed_s + seconds, due))
        await due.wait()

    def advance(self, seconds: float) -> None:
        """Move time and wake every sleeper that is due."""
        self._elapsed_s += seconds
        self._now += timedelta(seconds=seconds)
        for due_at, due in self._waiting:
            if due_at <= self._elapsed_s:
                due.set()
        self._waiting = [(due_at, due) for due_at, due in self._waiting if due_at > self._elapsed_s]
