"""Real Ray actors train on while nobody is attached, and tell everything to who comes next."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

from trackway_trainer_agent.worker.records import CheckpointPersisted, RankPhase, StepMetrics, TrainerStarted

from tests.integration.rank_harness import ended, of
from tests.ray_head import RayHead, ray_head


def drive(head: RayHead, what: str, folder: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.ray_training_driver", what, str(folder), head.address]
    done = subprocess.run(
        command, env=os.environ | head.environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_training_goes_on_without_its_driver_and_the_next_one_reads_it_all(tmp_path: Path) -> None:
    with ray_head(cpus=2) as head:
        drive(head, "begin", tmp_path)
        drive(head, "finish", tmp_path)
    seen_phases, found = pickle.loads((tmp_path / "found").read_bytes())
    assert seen_phases == [RankPhase.RUNNING, RankPhase.RUNNING]
    for rank in found:
        assert ended(rank).exit_code == 0
        assert len(of(TrainerStarted, rank)) == 1
        assert [item.step for item in of(StepMetrics, rank)] == list(range(1, 16))
        assert [item.step for item in of(CheckpointPersisted, rank)] == [5, 10, 15]
    assert list((tmp_path / "scratch").glob("rank-*")) == []
