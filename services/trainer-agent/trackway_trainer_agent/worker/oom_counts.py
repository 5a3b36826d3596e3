"""Kernel kills for memory since a moment, over all cgroups that a trainer is seen in, and when the last one came."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trackway_common.oom_counter import oom_kills_of

from trackway_trainer_agent.worker.journal import now_ms


class OomCounts:
    """Of one trainer; its counters are read by one thread at a time."""

    def __init__(self, now: Callable[[], int] = now_ms) -> None:
        self._now = now
        self._counted: dict[Path, tuple[int, int]] = {}
        """Per counter file: kills at first sight, and at last sight."""
        self.last_at_ms: int | None = None
        """When more kills than before were last seen."""

    def count(self, counter: Path) -> None:
        """Read one counter; the first time is what it counts from."""
        kills = oom_kills_of(counter)
        if kills is None:
            return
        first, last = self._counted.get(counter, (kills, kills))
        if kills > last:
            self.last_at_ms = self._now()
        self._counted[counter] = (first, kills)

    def count_all(self) -> None:
        """Read every counter that was seen."""
        for counter in list(self._counted):
            self.count(counter)

    @property
    def kills(self) -> int | None:
        """Kills since then; ``None`` where nobody counts."""
        return max((last - first for first, last in self._counted.values()), default=None)
