"""The next attempt in the gang of the one before: when it may, and that nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from trackway_common import events as e
from trackway_common.checkpoint.entries import Commit, Fence
from trackway_common.clock import ManualClock
from trackway_common.events import NextMove
from trackway_common.events import TerminationReason as Reason
from trackway_common.testing.run_facts import RUN_ID, run_spec
from trackway_trainer_agent.gangs import Bundle, GangName, GangRequest
from trackway_trainer_agent.shell.warm_gangs import KEEP_S, Kept, WarmGangs
from trackway_trainer_agent.worker.records import RankPhase

from tests.unit.trainer_agent.reports import captured, first_step, persisted
from tests.unit.trainer_agent.test_agent_saves import commit
from tests.unit.trainer_agent.world import REAL_TICK_S, World

AT = datetime(2026, 1, 1, tzinfo=UTC)
FIRST, SECOND = GangName(run_id=RUN_ID, attempt=1), GangName(run_id=RUN_ID, attempt=2)


def decided(move: NextMove = NextMove.RETRY, backoff_seconds: float = 1.0) -> e.RetryDecided:
    return e.RetryDecided(attempt=1, move=move, backoff_seconds=backoff_seconds, not_before=AT, decided_at=AT)


async def end_first(world: World, *, saving: bool = False) -> e.AttemptEnded:
    """Place the first attempt and kill its programs."""
    await world.place()
    await world.fact(e.AttemptStarted)
    for rank in (0, 1):
        if saving:
            world.rank(rank).tell(captured())
    for rank in (0, 1):
        world.rank(rank).exit(signal="SIGKILL", saving=saving)
    return await world.fact(e.AttemptEnded)


async def test_the_next_attempt_starts_in_the_actors_of_the_one_before(world: World) -> None:
    async with world.agent():
        await end_first(world)
        first_token = world.rank(0).spec.attempt_token
        await world.order(decided())
        await world.place(2)
        started = await world.fact(e.AttemptStarted, attempt=2)
        assert world.gangs.made == [FIRST]
        assert [rank.actor for rank in started.ranks] == [FIRST.actor(0), FIRST.actor(1)]
        spec = world.rank(0).spec
        assert (spec.attempt, spec.epoch) == (2, 2)
        assert spec.attempt_token != first_token
        for rank in (0, 1):
            world.rank(rank).tell(first_step())
            world.rank(rank).exit(0)
        ended = await world.fact(e.AttemptEnded, attempt=2)
        await world.until(lambda: not world.gangs.names)
    assert ended.reason is Reason.COMPLETED


async def test_what_the_attempt_before_captured_is_on_disk_and_committed_first(world: World) -> None:
    async with world.agent():
        ended = await end_first(world, saving=True)
        await world.order(decided())
        await world.place(2, captures_in_flight=ended.captures_in_flight)
        await world.fact(e.AttemptStarting, attempt=2)
        for rank in (0, 1):
            world.rank(rank).tell(persisted())
            world.rank(rank).phase = RankPhase.ENDED
        (request,) = await world.until(lambda: world.requests(e.CommitCheckpoint))
        assert "AttemptStarted" not in world.names(2)
        commit(world, request.nonce, request.step)
        await world.fact(e.AttemptStarted, attempt=2)
    assert [type(entry.body) for entry in world.commit_log().entries()][:3] == [Fence, Commit, Fence]
    assert world.gangs.made == [FIRST]


@pytest.mark.parametrize(
    "facts",
    [
        (decided(NextMove.STOP),),
        (decided(NextMove.HOLD),),
        (decided(backoff_seconds=300.0),),
        (e.CancelRequested(actor="ada", requested_at=AT),),
        (e.AttemptWrittenOff(attempt=1, reason=Reason.AGENT_LOST, written_off_at=AT),),
        (decided(), e.AttemptPlaced(attempt=2, epoch=2, pool="other", agent_id="agent-other", placed_at=AT)),
    ],
    ids=["stopped", "held", "long backoff", "cancelled", "written off", "placed elsewhere"],
)
async def test_a_gang_that_nobody_will_use_soon_is_given_back_at_once(world: World, facts: tuple[e.Fact, ...]) -> None:
    async with world.agent():
        ended = await end_first(world)
        assert world.gangs.names == {FIRST}
        world.tick_s = REAL_TICK_S
        await world.order(*facts)
        await world.until(lambda: not world.gangs.names)
        assert (world.clock.now() - ended.ended_at).total_seconds() < KEEP_S


async def test_a_gang_is_given_back_when_nothing_is_heard(world: World) -> None:
    async with world.agent():
        ended = await end_first(world)
        world.tick_s = 0.2
        await world.until(lambda: not world.gangs.names)
        assert (world.clock.now() - ended.ended_at).total_seconds() >= 60


def kill_an_actor(world: World) -> None:
    world.rank(1).die()


def crash(world: World) -> None:
    for rank in (0, 1):
        world.rank(rank).exit(signal="SIGKILL")


@pytest.mark.parametrize(
    ("end", "changes"),
    [
        (kill_an_actor, {}),
        (crash, {"ranks": tuple(e.RankPlacement(rank=rank, bundle=rank, cpus=2.0) for rank in (0, 1))}),
        (crash, {"ranks": (e.RankPlacement(rank=0, bundle=0, cpus=1.0),)}),
        (crash, {"shape": e.AttemptShape(compute=run_spec().compute, world_size=2, excluded_nodes=("node-1",))}),
    ],
    ids=["an actor died", "other resources", "fewer ranks", "a node is left out"],
)
async def test_another_placement_has_actors_of_its_own(
    world: World, end: Callable[[World], None], changes: dict[str, object]
) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        end(world)
        await world.fact(e.AttemptEnded)
        await world.order(decided())
        await world.place(2, **changes)
        started = await world.fact(e.AttemptStarted, attempt=2)
        await world.until(lambda: world.gangs.names == {SECOND})
    assert started.ranks[0].actor == SECOND.actor(0)


async def test_an_actor_that_died_while_nothing_ran_in_it_is_no_obstacle(world: World) -> None:
    async with world.agent():
        await end_first(world)
        await world.order(decided())
        world.rank(1).die()
        await world.place(2)
        await world.fact(e.AttemptStarted, attempt=2)
        assert world.gangs.names == {SECOND}


async def test_a_restarted_agent_finds_the_gang_that_was_taken_over(world: World) -> None:
    async with world.agent():
        await end_first(world)
        await world.order(decided())
        await world.place(2)
        await world.fact(e.AttemptStarted, attempt=2)
    async with world.agent():
        world.tick_s = 0.2
        before = world.clock.monotonic()
        await world.until(lambda: world.clock.monotonic() > before + 25.0)
        assert world.gangs.names == {FIRST}
        for rank in (0, 1):
            world.rank(rank).exit(0)
        ended = await world.fact(e.AttemptEnded, attempt=2)
        await world.until(lambda: not world.gangs.names)
    assert ended.reason is Reason.COMPLETED


async def test_an_agent_that_was_killed_while_it_took_over_leaves_nothing_running(world: World) -> None:
    async with world.agent():
        await end_first(world)
    await world.order(decided())
    # As if it had got as far as telling one rank to start.
    await world.gangs.renew(FIRST, 0)
    await world.place(2)
    async with world.agent():
        await world.fact(e.AttemptStarted, attempt=2)
        await world.until(lambda: world.gangs.names == {SECOND})
    assert world.gangs.made == [FIRST, SECOND]


REQUEST = GangRequest(name=FIRST, bundles=(Bundle(cpus=1.0),), wait_s=1.0)


async def test_a_gang_is_not_kept_from_whoever_was_placed_there() -> None:
    warm = WarmGangs(ManualClock())
    kept = Kept(request=REQUEST, cluster_id="c")
    with warm.offering(RUN_ID), warm.making_room():
        assert not await warm.was_taken(kept)
    with warm.offering(RUN_ID):
        with warm.making_room():
            pass
        assert not await warm.was_taken(kept)
        assert await warm.take(replace(REQUEST, name=SECOND)) is None
