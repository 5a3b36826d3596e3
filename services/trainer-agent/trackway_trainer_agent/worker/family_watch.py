"""Watches a trainer and all that it started: their memory against a bound, and the cgroups that count kernel kills."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import psutil
from trackway_common.oom_counter import oom_counter

from trackway_trainer_agent.worker.host_report import shared_memory_of
from trackway_trainer_agent.worker.oom_counts import OomCounts
from trackway_trainer_agent.worker.records import FilesystemState

logger = logging.getLogger(__name__)

PERIOD_S = 0.25
"""Short against the time that it takes to fill a node's memory."""
COUNTERS_EVERY_S = 0.02
"""A process may be put into a cgroup of its own, and be killed there, right after its start: one small read each."""
SETTLING_S = 10.0
"""After it a process has the cgroup that it will have."""
PIDS_KEPT = 10_000


class FamilyWatch:
    """A thread; ``over`` is called once, from it, when the family uses more memory than its bound."""

    def __init__(
        self,
        pid: int,
        *,
        bound_bytes: int,
        over: Callable[[int], None],
        ooms: OomCounts,
        period_s: float = PERIOD_S,
    ) -> None:
        self._pid = pid
        self._bound_bytes = bound_bytes
        self._over = over
        self._period_s = period_s
        self._stop = threading.Event()
        self._ooms = ooms
        self.pids: set[int] = {pid}
        """Every process of the family that was ever seen."""
        self.killed_at_bytes = 0
        self.shared_memory: FilesystemState | None = None
        """As the trainer saw it last."""
        self._look()
        self._thread = threading.Thread(target=self._run, name="family-watch", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """End it and wait for it."""
        self._stop.set()
        self._thread.join()
        self._ooms.count_all()

    def _run(self) -> None:
        begun_at_s = looked_at_s = time.monotonic()
        while not self._stop.wait(self._pause_s(time.monotonic() - begun_at_s)):
            if (counter := oom_counter(self._pid)) is not None:
                self._ooms.count(counter)
            if time.monotonic() - looked_at_s >= self._period_s:
                self._look()
                looked_at_s = time.monotonic()

    def _pause_s(self, running_s: float) -> float:
        return min(COUNTERS_EVERY_S, self._period_s) if running_s < SETTLING_S else self._period_s

    def _look(self) -> None:
        family = _family(self._pid)
        self.shared_memory = shared_memory_of(self._pid) or self.shared_memory
        if len(self.pids) < PIDS_KEPT:
            self.pids.update(process.pid for process in family)
        for counter in {found for process in family if (found := oom_counter(process.pid)) is not None}:
            self._ooms.count(counter)
        self._ooms.count_all()
        if self._bound_bytes and not self.killed_at_bytes:
            self._check(family)

    def _check(self, family: list[psutil.Process]) -> None:
        if sum(_resident(process) for process in family) <= self._bound_bytes:
            return
        # Pages that forked workers share are counted for each of them; what is shared out is the truth, and dearer.
        used = sum(_proportional(process) for process in family)
        if used > self._bound_bytes:
            self.killed_at_bytes = used
            logger.warning("trainer over its memory bound", extra={"used": used, "bound": self._bound_bytes})
            self._over(used)


def _family(pid: int) -> list[psutil.Process]:
    try:
        trainer = psutil.Process(pid)
        return [trainer, *trainer.children(recursive=True)]
    except psutil.Error:
        return []


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _proportional(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.AccessDenied:
        return _resident(process)
    except psutil.Error:
        return 0
