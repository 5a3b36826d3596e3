"""From asking to the first step: Trackway and bare Ray actors in turn, on one stack and one Ray.

The peer's driver is already connected, which favours it.
"""

from __future__ import annotations

import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from trackway.local.state import read_endpoints
from trackway_common.events import RunPhase

from tests.bench import bare_ray
from tests.bench.results import Results
from tests.support.runs import TRAINING, follow, spec, submit
from tests.support.stack import Stack


def register_numbers(stack: Stack, folder: Path) -> list[Path]:
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


def measure(results: Results, stack: Stack, folder: Path, data: list[Path], rounds: int) -> None:
    """Seconds from asking to the first step of the first rank: ours, and bare Ray's; after a warm-up of each."""
    bare_ray.connect(read_endpoints(stack.state)["ray"], stack.folder.ray_token)
    try:
        for number in range(rounds + 1):
            began = time.monotonic()
            ours = ours_to_first_step(stack, folder)
            bare = bare_ray.seconds_to_first_step(TRAINING, data)
            if number > 0:
                results.first_step_s.append(ours)
                results.bare_first_step_s.append(bare)
            cost_s = time.monotonic() - began
            print(f"round {number}: trackway {ours:.2f} s, bare Ray {bare:.2f} s; {cost_s:.0f} s in all", flush=True)
    finally:  # else Ray ends this process when the stack goes, before an error is told
        bare_ray.disconnect()


def ours_to_first_step(stack: Stack, folder: Path) -> float:
    """Submit through the client, as a user would, and read the first step's time from the facts."""
    with stack.client() as client:
        began = datetime.now(UTC)
        followed = follow(client, submit(client, spec(folder, hyperparameters={"steps": bare_ray.STEPS})))
        if client.get_run(followed.run_id).phase is not RunPhase.SUCCEEDED:
            sys.exit(f"run {followed.run_id} did not succeed")
    first = datetime.fromisoformat(str(followed.one("AttemptRunning")["first_step_at"]))
    return (first - began).total_seconds()
