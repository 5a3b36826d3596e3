"""Real trainers that get nowhere, or that print without end, under a real agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from trackway_common import events as e
from trackway_common.events import TerminationReason as Reason
from trackway_common.object_store import BlobStore

from tests.integration.actor_gangs import RealWorld
from tests.integration.training_program import PROGRAM

FLOOD = """
import os
block = b"x" * 200 + b"\\n"
for _ in range(150):
    os.write(1, block * 300)
    os.write(2, block * 300)
raise ValueError("after the flood")
"""


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
            limits=e.Limits(stall_s=3.0, first_step_s=60.0),
        )
        ended = await world.fact(e.AttemptEnded)
    assert (ended.reason, ended.blamed_rank, ended.last_step) == (Reason.COLLECTIVE_TIMEOUT, 1, 3)
    assert "rank 1 did not enter (after step 3, in <module> at train.py:" in ended.cause
    hang = next(one.hang for one in ended.observations if one.hang is not None)
    for stuck in hang.ranks:
        assert stuck.stacks_digest is not None
        assert b"most recent call first" in BlobStore(world.store).get(stuck.stacks_digest)


async def test_a_flood_of_output_stops_nobody(world: RealWorld):
    async with world.agent():
        await world.run({"train.py": FLOOD})
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.USER_CODE_ERROR
    assert "ValueError: after the flood" in ended.cause
    (batches, dropped) = world.telemetry(), max(batch.dropped_logs for batch in world.telemetry())
    assert dropped > 0
    assert sum(len(batch.logs) for batch in batches) > 0
