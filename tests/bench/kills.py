"""From SIGKILL of a worker to the fact that closes its attempt, as a watching client is told."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from trackway import TrackwayClient

from tests.bench.results import Results
from tests.support.runs import Followed, follow, spec, submit, trainer_pid
from tests.support.stack import Stack

PER_RUN = 5
"""A run that makes no progress is held after eight attempts."""


def measure(results: Results, stack: Stack, folder: Path, count: int) -> None:
    """Kill rank 1's trainer of so many attempts, each as soon as it trains."""
    while len(results.closed_s) < count:
        began = time.monotonic()
        closed = of_one_run(stack, folder, min(PER_RUN, count - len(results.closed_s)))
        results.closed_s += closed
        cost_s = (time.monotonic() - began) / len(closed)
        print(f"{len(results.closed_s)} kills, {cost_s:.0f} s each with the start before it", flush=True)


def of_one_run(stack: Stack, folder: Path, count: int) -> list[float]:
    """Seconds of each kill of one run, which is cancelled after the last."""
    retry = {"unknown_kill": {"max": count, "backoff_s": 0.1}}
    paced = {"steps": 1_000_000, "checkpoint_every": 1_000_000, "work": 20}
    with stack.client() as client:
        killer = Killer(client, count)
        followed = follow(client, submit(client, spec(folder, hyperparameters=paced, retry=retry)), killer.on_fact)
    if len(killer.seconds) < count:
        sys.exit(f"run {followed.run_id} ended after {len(killer.seconds)} of {count} kills")
    return killer.seconds


class Killer:
    """Kills, and takes the time until it is told that the attempt is closed."""

    def __init__(self, client: TrackwayClient, count: int) -> None:
        self._client = client
        self._count = count
        self._killed_at = 0.0
        self.seconds: list[float] = []

    def on_fact(self, followed: Followed) -> None:
        """Look at the newest fact of the run."""
        if len(self.seconds) == self._count:
            return
        match followed.facts[-1].fact:
            case "AttemptRunning":
                self._killed_at = time.monotonic()
                os.kill(trainer_pid(followed, 1), signal.SIGKILL)
            case "AttemptEnded":
                self.seconds.append(time.monotonic() - self._killed_at)
                if len(self.seconds) == self._count:
                    self._client.cancel(followed.run_id, reason="enough was measured")
