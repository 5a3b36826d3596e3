"""From the death of a worker, an actor or the cluster's head to the fact that closes the attempt, and to the next step.

Closed: as a watching client is told. Resumed: the next attempt's first step, less the backoff. A dead worker leaves its
actors to the next attempt (warm), a dead actor or head makes the agent place new ones (cold).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from trackway import TrackwayClient

from tests.bench.results import Restarts, Results
from tests.support.ranks import actor_of
from tests.support.runs import Followed, follow, spec, submit, trainer_pid
from tests.support.stack import Stack

PER_RUN = 5
"""A run that makes no progress is held after eight attempts."""


def measure(results: Results, stack: Stack, folder: Path, victim: str, count: int) -> None:
    """Kill so many, each as soon as its attempt trains."""
    restarts = results.restarts.setdefault(victim, Restarts())
    while len(restarts.closed_s) < count:
        began = time.monotonic()
        before = len(restarts.closed_s)
        of_one_run(stack, folder, Killer(stack, victim, min(PER_RUN, count - before), restarts))
        cost_s = (time.monotonic() - began) / (len(restarts.closed_s) - before)
        print(f"{victim}: {len(restarts.closed_s)} killed, {cost_s:.0f} s each with the start before it", flush=True)


def of_one_run(stack: Stack, folder: Path, killer: Killer) -> None:
    """Kills within one run, which is cancelled once it trains after the last."""
    reasons = ("unknown_kill", "process_crash", "unknown", "node_lost")
    retry = {reason: {"max": killer.count, "backoff_s": 0.1} for reason in reasons}
    paced = {"steps": 1_000_000, "checkpoint_every": 1_000_000, "work": 20}
    with stack.client() as client:
        killer.client = client
        followed = follow(client, submit(client, spec(folder, hyperparameters=paced, retry=retry)), killer.on_fact)
    if killer.killed < killer.count:
        sys.exit(f"run {followed.run_id} ended after {killer.killed} of {killer.count} kills")


@dataclass
class Killer:
    """Kills, and takes the time until it is told that the attempt is closed, and that the next one trains."""

    stack: Stack
    victim: str
    count: int
    restarts: Restarts
    client: TrackwayClient | None = None
    killed: int = 0
    _at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def on_fact(self, followed: Followed) -> None:
        """Look at the newest fact of the run."""
        match followed.facts[-1].fact:
            case "AttemptRunning":
                self._running(followed)
            case "AttemptEnded" if not followed.named("CancelRequested"):
                self.restarts.closed_s.append((datetime.now(UTC) - self._at).total_seconds())

    def _running(self, followed: Followed) -> None:
        first_step_at = moment(followed.named("AttemptRunning")[-1]["first_step_at"])
        if self.killed:
            backoff_s = float(followed.named("RetryDecided")[-1]["backoff_seconds"])
            self.restarts.resumed_s.append((first_step_at - self._at).total_seconds() - backoff_s)
        else:
            placed_at = moment(followed.named("AttemptPlaced")[-1]["placed_at"])
            self.restarts.cold_start_s.append((first_step_at - placed_at).total_seconds())
        if self.killed == self.count:
            assert self.client is not None
            self.client.cancel(followed.run_id, reason="enough was measured")
            return
        self.killed += 1
        self._at = datetime.now(UTC)
        self._kill(trainer_pid(followed, 1))

    def _kill(self, trainer: int) -> None:
        match self.victim:
            case "worker":
                os.kill(trainer, signal.SIGKILL)
            case "actor":
                os.kill(actor_of(trainer), signal.SIGKILL)
            case "head":
                self.stack.kill("ray")


def moment(text: object) -> datetime:
    """A fact's time."""
    return datetime.fromisoformat(str(text))
