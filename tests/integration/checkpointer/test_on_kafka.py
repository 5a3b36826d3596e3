"""Two checkpointer processes on a real broker, killed again and again while commands come in."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from trackway_common.checkpoint.fsck import fsck
from trackway_common.checkpoint.layout import CheckpointName
from trackway_common.checkpoint.resume import raise_fence
from trackway_common.clock import SystemClock
from trackway_common.events import CheckpointCommitted, CommitCheckpoint
from trackway_common.fact_reader import FactReader
from trackway_common.ids import checkpoint_stream, uuid7
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.object_store import open_store
from trackway_common.request_sender import RequestSender
from trackway_common.settings import KafkaSettings
from trackway_common.testing.checkpoints import CONFIG, DATASET, CheckpointedRun
from trackway_common.topics import CHECKPOINTS

STEPS = 24
KILLS = 5


class Process:
    """One checkpointer process."""

    def __init__(self, kafka: str, folder: Path, instance: str) -> None:
        self._environment = os.environ | {
            "TRACKWAY_KAFKA__BOOTSTRAP": kafka,
            "TRACKWAY_STORE__URL": f"file://{folder}/objects",
            "TRACKWAY_INSTANCE": instance,
            "TRACKWAY_CHECKPOINTER__GRACE_S": "0",
            "TRACKWAY_CHECKPOINTER__SWEEP_S": "0.5",
        }
        self.instance = instance
        self._log = folder / f"{instance}.log"
        self.started: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-m", "trackway_checkpointer"]
            self.started = subprocess.Popen(command, env=self._environment, stderr=log)

    def kill(self) -> None:
        assert self.started is not None
        self.started.send_signal(signal.SIGKILL)
        self.started.wait()

    def stop(self) -> int:
        assert self.started is not None
        self.started.terminate()
        return self.started.wait(10)

    def said(self) -> str:
        return self._log.read_text()


@pytest.fixture
async def log(kafka):
    made = KafkaEventLog(KafkaSettings(bootstrap=kafka))
    yield made
    await made.close()


async def facts_of(log, run, expected: int):
    """Facts of the run as a reader that starts at the beginning accepts them, once there are as many as entries."""
    reader, found, verdicts = FactReader(log, CHECKPOINTS), [], set()
    async with asyncio.timeout(60):
        async for batch in reader.read():
            mine = [judged for judged in batch if judged.commit.stream == checkpoint_stream(run.run_id)]
            found += [judged.commit for judged in mine if judged.accepted]
            verdicts |= {type(judged.verdict).__name__ for judged in mine}
            if len(found) >= expected:
                break
    assert verdicts <= {"Accepted", "Duplicate"}
    return found


async def test_kills_lose_and_double_nothing(kafka, log, tmp_path):
    run = CheckpointedRun(open_store(f"file://{tmp_path}/objects"), f"run-{uuid.uuid4()}")
    run.now_ms = 1_800_000_000_000
    raise_fence(run.log("agent"), 1)
    processes = [Process(kafka, tmp_path, name) for name in ("a", "b")]
    for process in processes:
        process.start()
    sender = RequestSender(log, "agent", SystemClock(), uuid7)
    try:
        for step in range(1, STEPS + 1):
            name = CheckpointName(step=step, epoch=1, nonce=f"n{step:04d}")
            run.write(name)
            await sender.send(command(run, name), key=run.run_id)
            if step % (STEPS // KILLS) == 0:
                await committed(run, step - 2)
                victim = busiest(run, processes)
                victim.kill()
                victim.start()
        await committed(run, STEPS)
        await everything_freed(run)
        entries = run.log().refresh().slot
        commits = await facts_of(log, run, entries)
    finally:
        codes = [process.stop() for process in processes]
    assert {*codes} <= {0, -signal.SIGTERM}, "asked to stop while it starts, Python itself ends"
    assert [commit.first_seq for commit in commits] == list(range(1, entries + 1))
    steps = [fact.checkpoint.step for c in commits for fact in c.facts if isinstance(fact, CheckpointCommitted)]
    assert steps == list(range(1, STEPS + 1))
    report = fsck(run.log())
    assert report.problems == ()
    assert len(report.verified) == 2
    for process in processes:
        assert '"level": "error"' not in process.said()


def busiest(run, processes) -> Process:
    """The one that wrote last, probably in the middle of something."""
    writer = run.log().tip().writer
    return next((process for process in processes if writer == f"checkpointer/{process.instance}"), processes[0])


def command(run, name) -> CommitCheckpoint:
    return CommitCheckpoint(
        run_id=run.run_id,
        epoch=name.epoch,
        step=name.step,
        nonce=name.nonce,
        world_size=run.world_size,
        config_digest=CONFIG,
        dataset_digests=(DATASET,),
        keep_last=2,
    )


async def committed(run, step: int) -> None:
    """Wait until the commit log has the step."""
    async with asyncio.timeout(60):
        while all(commit.commit.step < step for commit in run.log().refresh().commits.values()):
            await asyncio.sleep(0.02)


async def everything_freed(run) -> None:
    async with asyncio.timeout(60):
        while sum(commit.deleted is None for commit in run.log().refresh().commits.values()) > 2:
            await asyncio.sleep(0.05)
