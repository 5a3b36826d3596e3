"""`make bench`: what the orchestration costs, beside bare Ray actors doing the same training, in one run.

Rounds alternate, on one stack and one Ray; the peer's driver is already connected, which favours it.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from trackway.local.state import read_endpoints
from trackway_common.events import RunPhase

from tests.bench import bare_ray
from tests.support.runs import TRAINING, follow, spec, submit, trainer_pid
from tests.support.stack import Stack, running_stack


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=10, help="submissions of each kind")
    options.add_argument("--kills", type=int, default=20, help="workers killed")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="tw-bench-") as folder:
        for stack in running_stack(Path(folder, "state")):
            data = numbers(stack, Path(folder, "numbers"))
            ours, bare = first_steps(stack, Path(folder), data, chosen.rounds)
            closed = kills(stack, Path(folder), chosen.kills)
    report(ours, bare, closed)
    return 0


def numbers(stack: Stack, folder: Path) -> list[Path]:
    """Make and register the dataset; return its files."""
    folder.mkdir()
    draw = random.Random(3)
    rows = [[draw.uniform(-1, 1) for _ in range(4)] for _ in range(120)]
    path = folder / "part.txt"
    path.write_text("".join(" ".join(f"{x:.6f}" for x in (*row, sum(row))) + "\n" for row in rows))
    answer = stack.cli("dataset", "snapshot", "numbers", str(folder), "--project", "tests")
    if answer.code != 0:
        sys.exit(answer.err)
    return [path]


def first_steps(stack: Stack, folder: Path, data: list[Path], rounds: int) -> tuple[list[float], list[float]]:
    """Seconds from asking to the first step of the first rank: ours, and bare Ray's; after a warm-up of each."""
    bare_ray.connect(read_endpoints(stack.state)["ray"], stack.folder.ray_token)
    ours, bare = [], []
    for number in range(rounds + 1):
        ours.append(ours_to_first_step(stack, folder))
        bare.append(bare_ray.seconds_to_first_step(TRAINING, data))
        print(f"round {number}: trackway {ours[-1]:.2f} s, bare Ray {bare[-1]:.2f} s", flush=True)
    bare_ray.disconnect()
    return ours[1:], bare[1:]


def ours_to_first_step(stack: Stack, folder: Path) -> float:
    """Submit through the client, as a user would, and read the first step's time from the facts."""
    with stack.client() as client:
        began = datetime.now(UTC)
        followed = follow(client, submit(client, spec(folder, hyperparameters={"steps": bare_ray.STEPS})))
        if client.get_run(followed.run_id).phase is not RunPhase.SUCCEEDED:
            sys.exit(f"run {followed.run_id} did not succeed")
    first = datetime.fromisoformat(str(followed.one("AttemptRunning")["first_step_at"]))
    return (first - began).total_seconds()


def kills(stack: Stack, folder: Path, count: int) -> list[float]:
    """Seconds from SIGKILL of a worker to the fact that closes its attempt, as a watching client is told."""
    seconds: list[float] = []
    while len(seconds) < count:
        seconds += kills_of_one_run(stack, folder, min(5, count - len(seconds)))
        print(f"{len(seconds)} kills", flush=True)
    return seconds


def kills_of_one_run(stack: Stack, folder: Path, count: int) -> list[float]:
    """Kill a worker of each of the run's attempts as soon as it trains, then let it finish."""
    stop_file = folder / "stop"
    stop_file.unlink(missing_ok=True)
    killed_at: list[float] = []
    seconds: list[float] = []

    def on_fact(followed) -> None:
        fact = followed.facts[-1].fact
        if fact == "AttemptRunning" and len(killed_at) < count:
            killed_at.append(time.monotonic())
            os.kill(trainer_pid(followed, 1), signal.SIGKILL)
        elif fact == "AttemptRunning":
            stop_file.touch()
        elif fact == "AttemptEnded" and len(seconds) < len(killed_at):
            seconds.append(time.monotonic() - killed_at[-1])

    retry = {"unknown_kill": {"max": count + 1, "backoff_s": 0.1}}
    paced = {"stop_file": str(stop_file), "checkpoint_every": 1000, "work": 20}
    with stack.client() as client:
        follow(client, submit(client, spec(folder, hyperparameters=paced, retry=retry)), on_fact)
    return seconds


def report(ours: list[float], bare: list[float], closed: list[float]) -> None:
    """Print the dated table."""
    ratios = [mine / theirs for mine, theirs in zip(ours, bare, strict=True)]
    cut = statistics.quantiles(closed, n=100, method="inclusive")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    print(f"\n{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {platform.system()}, at {commit.stdout.strip()}\n")
    print("| | trackway | bare Ray actors | ratio |\n|---|---|---|---|")
    medians = statistics.median(ours), statistics.median(bare)
    print(f"| submit → first step, median of {len(ours)} | {medians[0]:.2f} s | {medians[1]:.2f} s |", end="")
    print(f" {statistics.median(ratios):.2f} (min {min(ratios):.2f}, max {max(ratios):.2f}) |")
    print(f"| SIGKILL of a worker → attempt closed, p50 / p99 of {len(closed)} |", end="")
    print(f" {cut[49] * 1000:.0f} / {cut[98] * 1000:.0f} ms | – | – |")


if __name__ == "__main__":
    sys.exit(main())
