"""The cluster goes away, comes back, or is another one."""

from __future__ import annotations

from trackway_common import events as e
from trackway_common.events import TerminationReason as Reason
from trackway_common.testing.run_facts import RUN_ID
from trackway_trainer_agent.gangs import Bundle, GangName, GangRequest

from tests.unit.trainer_agent.world import World


async def test_a_new_head_means_that_the_placement_is_gone(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        world.gangs.restart()
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.NODE_LOST
    assert "cluster-1-again" in ended.cause


async def test_no_head_for_ten_seconds_means_the_same(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        gone_at = world.clock.now()
        world.gangs.reachable = world.listening = False
        ended = await world.fact(e.AttemptEnded)
        assert ended.reason is Reason.NODE_LOST
        assert (ended.ended_at - gone_at).total_seconds() >= 10.0
        world.gangs.restart()
        world.gangs.reachable = True
        await world.place(2)
        await world.fact(e.AttemptStarted, attempt=2)


async def test_a_head_that_is_only_slow_ends_nothing(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        world.gangs.reachable = False
        at = world.clock.monotonic()
        await world.until(lambda: world.clock.monotonic() > at + 30.0)
        world.gangs.reachable = True
        for rank in (0, 1):
            world.rank(rank).exit(0)
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.COMPLETED


async def test_a_gang_that_came_to_stand_after_its_end_is_swept_away(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).exit(0)
        await world.until(lambda: not world.gangs.names)
        late = GangRequest(name=GangName(run_id=RUN_ID, attempt=1), bundles=(Bundle(cpus=1),) * 2, wait_s=1)
        await world.gangs.create(late)
        await world.until(lambda: not world.gangs.names)
