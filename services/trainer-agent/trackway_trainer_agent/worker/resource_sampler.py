"""Measures what a trainer and its descendants use, every few seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import psutil

from trackway_trainer_agent.worker.records import ResourceSample

PERIOD_S = 5.0
FIRST_S = 1.0
"""Also a run of seconds is measured once."""


class ResourceSampler:
    """A thread that hands samples to ``sink`` until it is stopped or the trainer is gone."""

    def __init__(self, pid: int, sink: Callable[[ResourceSample], None], *, period_s: float = PERIOD_S) -> None:
        self._pid = pid
        self._sink = sink
        self._period_s = period_s
        self._stop = threading.Event()
        self._seen_cpu_s = 0.0
        self._seen_at_s = time.monotonic()
        self.peak_memory_bytes = 0
        self._thread = threading.Thread(target=self._run, name="resource-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it and wait for it."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        wait_s = min(FIRST_S, self._period_s)
        while not self._stop.wait(wait_s):
            wait_s = self._period_s
            sample = self._measure()
            if sample is None:
                return
            self.peak_memory_bytes = max(self.peak_memory_bytes, sample.memory_bytes)
            self._sink(sample)

    def _measure(self) -> ResourceSample | None:
        try:
            trainer = psutil.Process(self._pid)
            family = (trainer, *trainer.children(recursive=True))
        except psutil.NoSuchProcess:
            return None
        used = [use for process in family if (use := _use(process)) is not None]
        cpu_s, now_s = sum(cpu for cpu, _ in used), time.monotonic()
        # A child that ended takes its seconds along; the rate is never negative.
        rate = max(0.0, cpu_s - self._seen_cpu_s) / max(1e-6, now_s - self._seen_at_s)
        self._seen_cpu_s, self._seen_at_s = cpu_s, now_s
        return ResourceSample(
            memory_bytes=sum(memory for _, memory in used),
            cpu_percent=round(100 * rate, 1),
            at_ms=time.time_ns() // 1_000_000,
        )


def _use(process: psutil.Process) -> tuple[float, int] | None:
    try:
        times = process.cpu_times()
        return times.user + times.system, process.memory_info().rss
    except psutil.Error:
        return None  # It ended between listing and reading.
