"""Two ranks train, one is killed, the next attempt goes on where the last checkpoint ends.

That its losses are those of a run nothing happened to, bit for bit, is tested with the whole stack (tests/e2e).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from trackway_common.canonical import Json, canonical_json
from trackway_common.checkpoint.commit import CommitRequest, commit_checkpoint
from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.entries import Commit
from trackway_common.checkpoint.layout import CheckpointName
from trackway_common.checkpoint.resume import choose_resume_target, raise_fence
from trackway_common.object_store import open_store
from trackway_trainer_agent.worker.rank_actor import RankActor
from trackway_trainer_agent.worker.rank_spec import RankSpec, ResumeTarget
from trackway_trainer_agent.worker.records import (
    CheckpointCaptured,
    CheckpointPersisted,
    FirstStepReported,
    LogLine,
    PhasesMeasured,
    Record,
    StepMetrics,
)

from tests.integration.rank_harness import ended, of, ranks_of, records, script_spec, wait_for_end, wait_until
from tests.integration.training_program import PROGRAM

STEPS = 23


class Cluster:
    """Rank actors of one node, and the store that they share; plays the agent and the checkpointer."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "objects"
        self.folder = folder
        self.actors: list[RankActor] = []

    def spec(self, hyperparameters: Mapping[str, Json]) -> RankSpec:
        return script_spec(self.store, {"train.py": PROGRAM}, hyperparameters=hyperparameters)

    def start(self, spec: RankSpec, world_size: int) -> list[RankActor]:
        """Fence, choose where to resume, start every rank."""
        log = self.log(spec)
        target = choose_resume_target(log, raise_fence(log, spec.epoch)).checkpoint
        resume = None
        if target is not None:
            name = CheckpointName(step=target.step, epoch=target.epoch, nonce=target.nonce)
            resume = ResumeTarget(
                step=target.step, path=name.path, manifest_digest=target.manifest_digest, run_id=spec.run_id
            )
        actors = [RankActor(scratch=str(self.folder / "scratch")) for _ in range(world_size)]
        self.actors += actors
        specs = ranks_of(replace(spec, resume=resume), world_size, actors[0].describe().free_port)
        for actor, rank_spec in zip(actors, specs, strict=True):
            actor.start(rank_spec)
        return actors

    def commit(self, spec: RankSpec, found: list[list[Record]]) -> list[int]:
        """Commit what every rank has persisted; the steps."""
        parts = [{item.nonce: item.step for item in of(CheckpointPersisted, each)} for each in found]
        whole = [(step, nonce) for nonce, step in parts[0].items() if all(nonce in part for part in parts)]
        for step, nonce in whole:
            request = CommitRequest(
                run_id=spec.run_id,
                name=CheckpointName(step=step, epoch=spec.epoch, nonce=nonce),
                world_size=len(found),
                config_digest=spec.config_digest,
                dataset_digests=(),
            )
            entry = commit_checkpoint(self.log(spec), request)
            assert isinstance(entry.body, Commit)
        return [step for step, _ in whole]

    def log(self, spec: RankSpec) -> CommitLog:
        return CommitLog(open_store(self.store.as_uri()), spec.run_id, writer="test", now_ms=lambda: 0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    for actor in made.actors:
        actor.close()


def steps(found: list[list[Record]]) -> list[list[int]]:
    """Steps that each rank reported a loss for."""
    return [[item.step for item in of(StepMetrics, each) if "loss" in dict(item.values)] for each in found]


def measured_since_first_step(measured: PhasesMeasured | None) -> float:
    """What a session's clock says passed since its first report."""
    assert measured is not None
    told = measured.phases
    return told.data_wait_seconds + told.checkpoint_stall_seconds + told.step_seconds


def reported_seconds(found: list[Record]) -> float:
    """From the first report to the session's last word, by the node's wall clock."""
    measured = ended(found).phases
    assert measured is not None
    return (measured.at_ms - of(FirstStepReported, found)[0].at_ms) / 1000


def printed(found: list[Record]) -> list[str]:
    return [line.text for line in of(LogLine, found) if line.stream == "stdout"]


def test_killed_rank_resumes_and_another_world_size_goes_on(cluster: Cluster) -> None:
    spec = cluster.spec({"steps": STEPS, "every": 5, "hang_at": {"1": 12}})
    actors = cluster.start(spec, 2)
    wait_until(lambda: actors[1].ping().last_step == 12)
    os.kill(actors[1].ping().trainer_pid or 0, signal.SIGKILL)
    found = [wait_for_end(actor) for actor in actors]
    died, survived = ended(found[1]), ended(found[0])
    assert (died.signal, died.last_step, died.stop_requested) == ("SIGKILL", 12, False)
    # The survivor's error is told too: a cascade, which the record's time and text let a reader see.
    assert survived.exit_code == 1
    assert survived.error is not None
    assert (survived.error.source, survived.error.step) == ("sdk", 12)
    assert survived.error.monotonic_ns is not None
    assert cluster.commit(spec, found) == [5, 10]
    assert measured_since_first_step(survived.phases) == pytest.approx(reported_seconds(found[0]), abs=2)

    hyperparameters = canonical_json({"steps": STEPS, "every": 5}).decode()
    again = replace(spec, attempt=2, epoch=2, attempt_token="token-2", hyperparameters_json=hyperparameters)
    resumed = [wait_for_end(actor) for actor in cluster.start(again, 2)]
    assert [ended(each).exit_code for each in resumed] == [0, 0]
    assert [ended(each).phases.phases.restore_seconds > 0 for each in resumed] == [True, True]
    assert all(capture.phases.phases.checkpoint_stall_seconds > 0 for capture in of(CheckpointCaptured, resumed[0]))
    assert printed(resumed[0])[0] == "starts at 10"
    assert of(FirstStepReported, resumed[0])[0].step == 11
    assert steps(resumed) == [list(range(11, STEPS + 1))] * 2
    assert [item.samples_consumed for item in of(CheckpointPersisted, resumed[0])] == [15 * 12, 20 * 12]

    # One rank goes on where two were: the same samples, none lost, none twice.
    assert cluster.commit(again, resumed) == [15, 20]
    longer = canonical_json({"steps": 25, "every": 5}).decode()
    third = replace(again, attempt=3, epoch=3, attempt_token="token-3", hyperparameters_json=longer)
    (alone,) = [wait_for_end(actor) for actor in cluster.start(third, 1)]
    assert ended(alone).exit_code == 0
    assert printed(alone)[0] == "starts at 20"
    assert [item.samples_consumed for item in of(CheckpointPersisted, alone)] == [25 * 12]


def test_hanging_trainer_shows_its_stack_and_what_it_captured_outlives_it(cluster: Cluster) -> None:
    spec = cluster.spec({"steps": 6, "every": 5, "hang_at": {"0": 5}})
    (actor,) = cluster.start(spec, 1)
    wait_until(lambda: bool(of(CheckpointCaptured, records(actor))))
    dump = actor.stacks()
    assert dump.source == "faulthandler"
    assert "train.py" in dump.text
    assert actor.stacks().source == "faulthandler"
    os.kill(actor.ping().trainer_pid or 0, signal.SIGKILL)
    found = wait_for_end(actor)
    assert ended(found).signal == "SIGKILL"
    assert cluster.commit(spec, [found]) == [5]
