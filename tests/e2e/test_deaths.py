"""SIGKILL of every part once during one run: it ends right, nothing is lost or doubled, training goes on."""

from __future__ import annotations

import itertools
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from trackway_common.events import RunPhase

from tests.support.facts import accepted, check_no_gap_no_repeat, check_told_facts_are_there_once, records
from tests.support.projection import check_views_equal_a_rebuild
from tests.support.raw_records import check_records
from tests.support.runs import Followed, ended, follow, spec, submit
from tests.support.stack import Stack, wait_until

PARTS = ("scheduler", "trainer-agent", "checkpointer", "evaluator", "observer", "kafka", "clickhouse")
STEPS_IN_OUTAGE = 50
WORK = 240
"""Makes a step some 75 ms on two busy cores: the machine's own pauses stay far below three of them."""
LARGEST_GAP = 3.0
"""In medians: what a step may take longer while a part of the control plane is away."""


class StepLog:
    """Steps as rank 0 itself wrote them down, with its own clock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def times(self) -> list[float]:
        """Monotonic time of each finished step."""
        return [float(line) for line in self._path.read_text().splitlines()] if self._path.exists() else []

    def count(self) -> int:
        """Steps finished so far."""
        return len(self.times())


@pytest.mark.timeout(420)
def test_a_run_survives_the_death_of_every_part(stack: Stack, client, tmp_path):
    stop_file, step_log = tmp_path / "stop", StepLog(tmp_path / "steps.log")
    paced = {"stop_file": str(stop_file), "step_log": str(tmp_path / "steps.log"), "work": WORK, "checkpoint_every": 25}
    run_id = submit(client, spec(tmp_path, hyperparameters=paced, topology=topology()))
    with ThreadPoolExecutor(1) as thread:
        following = thread.submit(follow_alone, stack, run_id)
        wait_until(lambda: step_log.count() >= STEPS_IN_OUTAGE, 90, what="training to be under way")
        outages = {part: outage(stack, part, step_log) for part in PARTS}
        stop_file.touch()
        followed = following.result(timeout=120)

    assert ended(client, run_id).phase is RunPhase.SUCCEEDED
    assert len(followed.named("AttemptStarted")) == 1
    assert followed.one("AttemptEnded")["reason"] == "COMPLETED"
    found = records(stack.kafka)
    check_records(found)
    commits = accepted(found)
    check_no_gap_no_repeat(commits)
    check_told_facts_are_there_once(commits, followed.facts)
    check_views_equal_a_rebuild(stack)
    assert {part: gap for part, gap in outages.items() if gap > LARGEST_GAP} == {}, outages


def follow_alone(stack: Stack, run_id: str) -> Followed:
    """Watch the run through every outage, with a client of its own."""
    with stack.client() as client:
        return follow(client, run_id)


def topology() -> dict:
    """Checkpoints may not hold the trainer up while the checkpointer is away; none ages, so that the log rests."""
    return {"world_size": 2, "strategy": "ddp", "checkpoint": {"keep_last": 1000, "in_flight": "skip"}}


def outage(stack: Stack, part: str, step_log: StepLog) -> float:
    """Keep a part dead until 50 steps have passed; return the largest gap between them, in medians of before."""
    times = step_log.times()
    median = statistics.median(differences(times[-STEPS_IN_OUTAGE:]))
    with stack.held_down(part):
        wait_until(lambda: step_log.count() >= len(times) + STEPS_IN_OUTAGE, 60, what=f"steps without {part}")
        inside = step_log.times()[len(times) - 1 :]
    return max(differences(inside)) / median


def differences(times: list[float]) -> list[float]:
    """Seconds between neighbours."""
    return [later - earlier for earlier, later in itertools.pairwise(times)]
