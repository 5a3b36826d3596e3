"""A cluster that announces that it takes a node away."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trackway_common import events as e
from trackway_common.events import TerminationReason as Reason

from tests.unit.trainer_agent.reports import reset_by_peer
from tests.unit.trainer_agent.world import World


async def noticed(world: World) -> None:
    """The cluster is asked once a second, a rank every 0.1 s."""
    drained = world.rank(0).drains
    await world.until(lambda: world.rank(0).drains > drained + 30)


@pytest.mark.parametrize(
    ("leaving", "reason"),
    [(("node-1",), Reason.PREEMPTED_SPOT), (("node-9",), Reason.DEVICE_OOM), ((), Reason.DEVICE_OOM)],
)
async def test_what_a_program_says_while_its_node_goes_is_collateral(
    world: World, leaving: tuple[str, ...], reason: Reason
):
    async with world.agent():
        await world.place(world_size=2)
        await world.fact(e.AttemptStarted)
        world.gangs.leaving = leaving
        await noticed(world)
        now_ms = int(world.clock.now().timestamp() * 1000)
        said = replace(reset_by_peer(now_ms), exception_type="torch.OutOfMemoryError", message="CUDA")
        world.rank(0).exit(1, error=said, at_ms=now_ms)
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is reason


async def test_a_notice_alone_ends_nothing(world: World):
    async with world.agent():
        await world.place(world_size=1)
        await world.fact(e.AttemptStarted)
        world.gangs.leaving = ("node-1",)
        await noticed(world)
        world.rank(0).exit(0)
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.COMPLETED
