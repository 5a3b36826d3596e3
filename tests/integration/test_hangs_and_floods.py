"""Real trainers that get nowhere, or that print without end, under a real agent."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from trackway_common import events as e
from trackway_common.events import TerminationReason as Reason
from trackway_common.object_store import BlobStore
from trackway_trainer_agent.adapters.log_spool import FILE_BYTES, FILES_KEPT
from trackway_trainer_agent.worker.journal import STDERR_KEPT
from trackway_trainer_agent.worker.line_gate import BURST, LAST_KEPT, LINES_PER_S
from trackway_trainer_agent.worker.record_buffer import MAX_LOGS

from tests.integration.actor_gangs import RealWorld
from tests.integration.training_program import PROGRAM

FLOOD = """
import os, threading, time
import trackway.training as tw

block = b"x" * 200 + b"\\n"
ends_at = time.monotonic() + 3.0
printed = []

def flood(stream):
    while time.monotonic() < ends_at:
        printed.append(os.write(stream, block * 300))

with tw.session() as session:
    floods = [threading.Thread(target=flood, args=(stream,)) for stream in (1, 2)]
    for one in floods:
        one.start()
    step = 0
    while any(one.is_alive() for one in floods):
        step += 1
        session.report(step, loss=1.0)
        time.sleep(0.01)
raise ValueError(f"printed {sum(printed)} bytes")
"""
"""Prints as fast as it can while it steps."""
LINE_BYTES = 201
RECORD_BYTES = 1024
"""More than any of these lines takes in the record buffer."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[RealWorld]:
    made = RealWorld(tmp_path)
    yield made
    # The agent keeps actors for a next attempt that nobody decides on here.
    for gang in list(made.gangs.actors):
        await made.gangs.remove(gang)


async def test_a_rank_that_misses_a_collective_is_blamed_by_its_stack(world: RealWorld):
    steps = {"steps": 50, "every": 100, "hang_at": {"1": 3}}
    async with world.agent():
        await world.run(
            {"train.py": PROGRAM},
            world_size=2,
            hyperparameters=steps,
            limits=e.Limits(stall_s=10.0, first_step_s=60.0),
        )
        ended = await world.fact(e.AttemptEnded)
    assert (ended.reason, ended.blamed_rank, ended.last_step) == (Reason.COLLECTIVE_TIMEOUT, 1, 3)
    assert "rank 1 did not enter (after step 3, in <module> at train.py:" in ended.cause
    hang = next(one.hang for one in ended.observations if one.hang is not None)
    for stuck in hang.ranks:
        assert stuck.stacks_digest is not None
        assert b"most recent call first" in BlobStore(world.store).get(stuck.stacks_digest)


async def test_a_flood_of_output_stops_nobody(world: RealWorld, tmp_path: Path):
    async with world.agent():
        await world.run({"train.py": FLOOD})
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.USER_CODE_ERROR
    printed = re.search(r"ValueError: printed (\d+) bytes", ended.cause)
    assert printed is not None
    batches = world.telemetry()
    beats = [batch.heartbeat.last_step for batch in batches if batch.heartbeat is not None]
    assert ended.last_step >= 20
    assert any(0 < step < ended.last_step for step in beats), "the agent heard of no step while it was flooded"
    kept, dropped = sum(len(batch.logs) for batch in batches), max(batch.dropped_logs for batch in batches)
    took_s = (ended.ended_at - ended.started_at).total_seconds()
    assert 0 < kept <= BURST + LINES_PER_S * took_s + LAST_KEPT
    assert dropped > 0
    assert kept + dropped <= int(printed[1]) // LINE_BYTES + STDERR_KEPT
    assert 0 < _size(tmp_path / "scratch", "records.sqlite*") < MAX_LOGS * RECORD_BYTES
    assert 0 < _size(tmp_path / "spool", "*.jsonl") <= (FILE_BYTES + RECORD_BYTES) * FILES_KEPT


def _size(folder: Path, name: str) -> int:
    return sum(path.stat().st_size for path in folder.rglob(name))
