"""Attempts that are told to end."""

from __future__ import annotations

import pytest
from trackway_common import events as e
from trackway_common.events import TerminationReason as Reason

from tests.unit.trainer_agent.world import World


def cancel(world: World) -> e.CancelRequested:
    return e.CancelRequested(reason="wrong data", actor="ada", requested_at=world.clock.now())


async def test_cancelling_stops_the_ranks_and_says_who(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        await world.order(cancel(world))
        ended = await world.fact(e.AttemptEnded)
        await world.until(lambda: not world.gangs.names)
    assert world.names()[-2:] == ["AttemptStopping", "AttemptEnded"]
    assert ended.reason is Reason.CANCELLED_BY_USER
    assert ended.confidence == 1.0
    assert "ada" in ended.cause
    assert {rank.signal for rank in ended.ranks} == {"SIGTERM"}


async def test_ranks_that_ignore_the_stop_get_their_grace_and_are_killed(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).obeys = False
        await world.order(cancel(world))
        stopping = await world.fact(e.AttemptStopping)
        ended = await world.fact(e.AttemptEnded)
        await world.until(lambda: not world.gangs.names)
    assert ended.reason is Reason.CANCELLED_BY_USER
    assert (ended.ended_at - stopping.stopping_at).total_seconds() >= world.timing.stop_grace_s


@pytest.mark.parametrize("waiting_for", ["cluster", "captures"])
async def test_cancelling_before_there_is_a_gang(world: World, waiting_for: str) -> None:
    world.gangs.reachable = waiting_for != "cluster"
    async with world.agent():
        await world.place(captures_in_flight=("gone",) if waiting_for == "captures" else ())
        await world.fact(e.AttemptStarting)
        await world.order(cancel(world))
        ended = await world.fact(e.AttemptEnded)
    assert (ended.reason, ended.gpu_seconds) == (Reason.CANCELLED_BY_USER, 0.0)
    assert "AttemptStarted" not in world.names()
    assert not world.gangs.made


async def test_cancelled_before_the_agent_heard_of_the_attempt(world: World) -> None:
    await world.place()
    await world.order(cancel(world), e.RunCancelled(reason="", ended_at=world.clock.now()))
    async with world.agent():
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.CANCELLED_BY_USER
    assert not world.gangs.made


async def test_a_written_off_attempt_stops_and_tells_what_it_knows(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        await world.order(e.AttemptWrittenOff(attempt=1, reason=Reason.AGENT_LOST, written_off_at=world.clock.now()))
        ended = await world.fact(e.AttemptEnded)
        await world.until(lambda: not world.gangs.names)
    assert ended.reason is Reason.AGENT_LOST


async def test_a_cancel_after_the_end_changes_nothing(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).exit(0)
        ended = await world.fact(e.AttemptEnded)
        await world.until(lambda: not world.gangs.names)
        before = world.commits()
        await world.order(cancel(world))
        await world.place(2, agent_id="agent-elsewhere")
        at = world.clock.monotonic()
        await world.until(lambda: world.clock.monotonic() > at + 2.0)
    assert ended.reason is Reason.COMPLETED
    assert world.commits() == before
