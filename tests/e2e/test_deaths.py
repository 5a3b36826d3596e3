"""SIGKILL of every part once during one run: it ends right, nothing is lost or doubled, training goes on."""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path

import pytest
from trackway_common.events import RunPhase

from tests.support.facts import accepted_commits, check_no_gap_no_repeat
from tests.support.projection import check_views_equal_a_rebuild
from tests.support.runs import ended, follow, spec, submit
from tests.support.stack import Stack, wait_until

PARTS = ("scheduler", "trainer-agent", "checkpointer", "evaluator", "observer", "kafka", "clickhouse")
STEPS_IN_OUTAGE = 50
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
    paced = {"stop_file": str(stop_file), "step_log": str(tmp_path / "steps.log"), "work": 60, "checkpoint_every": 25}
    run_id = submit(client, spec(tmp_path, hyperparameters=paced, topology=topology()))
    wait_until(lambda: step_log.count() >= STEPS_IN_OUTAGE, 90, what="training to be under way")
    told = {fact.cursor: fact for fact in first_facts(client, run_id)}

    outages = {part: outage(stack, part, step_log) for part in PARTS}

    stop_file.touch()
    followed = follow(client, run_id)
    assert ended(client, run_id).phase is RunPhase.SUCCEEDED
    assert len(followed.named("AttemptStarted")) == 1
    assert followed.one("AttemptEnded")["reason"] == "COMPLETED"
    assert [fact for cursor, fact in told.items() if cursor not in {f.cursor for f in followed.facts}] == []
    check_no_gap_no_repeat(accepted_commits(stack.kafka))
    check_views_equal_a_rebuild(stack)
    for part, (steps, gap) in outages.items():
        assert steps >= STEPS_IN_OUTAGE, f"{part}: {steps} steps"
        assert gap <= LARGEST_GAP, f"{part}: largest gap {gap:.1f} medians"


def topology() -> dict:
    """Checkpoints may not hold the trainer up while the checkpointer is away; none ages, so that the log rests."""
    return {"world_size": 2, "strategy": "ddp", "checkpoint": {"keep_last": 1000, "in_flight": "skip"}}


def first_facts(client, run_id: str) -> list:
    """What the client is told before anything is hurt."""
    facts = []
    for fact in client.watch(run_id):
        facts.append(fact)
        if fact.fact == "AttemptRunning":
            return facts
    raise AssertionError("the run ended before it ran")


def outage(stack: Stack, part: str, step_log: StepLog) -> tuple[int, float]:
    """Kill a part, wait until it is back and 50 steps have passed; return steps and the largest gap in medians."""
    before = step_log.count()
    median = statistics.median(differences(step_log.times()[-STEPS_IN_OUTAGE:]))
    killed = stack.kill(part)
    stack.wait_restarted(killed)
    wait_until(lambda: step_log.count() - before >= STEPS_IN_OUTAGE, 60, what=f"steps without {part}")
    during = step_log.times()[before:]
    return len(during), max(differences(during)) / median


def differences(times: list[float]) -> list[float]:
    """Seconds between neighbours."""
    return [later - earlier for earlier, later in itertools.pairwise(times)]
