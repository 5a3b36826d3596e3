"""Measures where a rank's time goes: restoring, waiting for data, saving, and everything else, which is training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TypeVar

from trackway_common.rank_protocol.phases import Phases

T = TypeVar("T")


class Phase(StrEnum):
    """What the program does besides training."""

    RESTORE = "restore"
    DATA_WAIT = "data_wait"
    CHECKPOINT_STALL = "checkpoint_stall"


class PhaseClock:
    """Monotonic and cumulative; used by one thread. Before the first step only the restore is told apart."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._spent = dict.fromkeys(Phase, 0.0)
        self._first_step_at: float | None = None
        self._current: tuple[Phase, float] | None = None

    def step(self) -> None:
        """A step is finished; from the first one on, time is training unless it is said to be something else."""
        if self._first_step_at is None:
            self._first_step_at = self._now()

    @contextmanager
    def during(self, phase: Phase) -> Iterator[None]:
        """Count the time inside for this phase; inside another phase it is that one's."""
        if self._current is not None:
            yield
            return
        self._current = (phase, self._now())
        try:
            yield
        finally:
            self._spent[phase] += self._in_progress(phase)
            self._current = None

    def each(self, items: Iterable[T]) -> Iterator[T]:
        """Pass items on; the wait for each of them counts as waiting for data."""
        iterator = iter(items)
        while True:
            with self.during(Phase.DATA_WAIT):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    def read(self) -> Phases:
        """What was measured so far, the phase in progress included."""
        spent = {phase: seconds + self._in_progress(phase) for phase, seconds in self._spent.items()}
        waited_s = spent[Phase.DATA_WAIT] + spent[Phase.CHECKPOINT_STALL]
        since_s = self._now() - self._first_step_at if self._first_step_at is not None else 0.0
        return Phases(
            restore_seconds=spent[Phase.RESTORE],
            data_wait_seconds=spent[Phase.DATA_WAIT],
            checkpoint_stall_seconds=spent[Phase.CHECKPOINT_STALL],
            step_seconds=max(0.0, since_s - waited_s),
        )

    def _in_progress(self, phase: Phase) -> float:
        """Seconds of the phase that is under way, as far as they count."""
        if self._current is None or self._current[0] is not phase:
            return 0.0
        counts = (phase is Phase.RESTORE) is (self._first_step_at is None)
        return self._now() - self._current[1] if counts else 0.0
