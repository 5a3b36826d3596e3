"""AgentService over a live agent."""

from __future__ import annotations

import asyncio

import pytest
from trackway_common import events as e
from trackway_common.errors import CommandRejected, NotFound, Unavailable
from trackway_common.ids import attempt_stream, uuid7
from trackway_common.testing.run_facts import RUN_ID
from trackway_proto.v1 import agent_service_pb2 as pb
from trackway_trainer_agent.domain.classify import VERSION
from trackway_trainer_agent.entrypoints.grpc_api import AgentApi
from trackway_trainer_agent.shell.agent import Agent

from tests.unit.trainer_agent.reports import line
from tests.unit.trainer_agent.world import World


def api_of(agent: Agent, world: World) -> AgentApi:
    api = AgentApi(world.spools)
    api.follow(agent)
    return api


async def tail(api: AgentApi, **request: object) -> list[tuple[int, int, str]]:
    lines = api.TailLogs(pb.TailLogsRequest(**request), None)
    return [(line.attempt, line.rank, line.text) async for line in lines]


async def test_attempts_show_where_their_trainers_are(world: World) -> None:
    async with world.agent() as agent:
        await world.place()
        started = await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).last_step = 5 + rank
        api = api_of(agent, world)
        async with asyncio.timeout(10):
            while True:
                (shown,) = (await api.ListAttempts(pb.ListAgentAttemptsRequest(), None)).attempts
                if shown.last_step == 6:
                    break
                await asyncio.sleep(0.01)
    assert (shown.run_id, shown.attempt, shown.state) == (RUN_ID, 1, "STARTING")
    assert [(r.rank, r.node, r.trainer_pid, r.last_step) for r in shown.ranks] == [
        (r.rank, "host-1", r.trainer_pid, 5 + r.rank) for r in started.ranks
    ]
    assert shown.started_at.ToDatetime() == started.started_at.replace(tzinfo=None)


class Caller:
    """The context of a call."""

    def auth_context(self) -> dict[str, object]:
        return {}

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return (("trackway-actor", "ada"),)


async def test_an_attempt_is_judged_again(world: World) -> None:
    async with world.agent() as agent:
        await world.place(world_size=1)
        await world.fact(e.AttemptStarted)
        world.rank(0).exit(signal="SIGKILL")
        await world.until(lambda: agent.state(attempt_stream(RUN_ID, 1)).ended)
        api = api_of(agent, world)
        look = await api.ReclassifyAttempt(pb.ReclassifyAttemptRequest(run_id=RUN_ID, attempt=1), Caller())
        with pytest.raises(NotFound):
            await api.ReclassifyAttempt(pb.ReclassifyAttemptRequest(run_id=RUN_ID, attempt=7), Caller())
    assert (look.before, look.reason, look.recorded) == (35, 35, False)
    assert (look.version_before, look.classifier_version) == (VERSION, VERSION)


async def test_logs_of_all_ranks_of_one_and_from_a_cursor(world: World) -> None:
    async with world.agent() as agent:
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(line(f"hello from {rank}"))
        await world.until(lambda: len(list(world.spools.of(RUN_ID, 1).read())) == 2)
        api = api_of(agent, world)
        everyone = [answer async for answer in api.TailLogs(pb.TailLogsRequest(run_id=RUN_ID), None)]
        assert sorted((a.attempt, a.rank, a.text) for a in everyone) == [(1, 0, "hello from 0"), (1, 1, "hello from 1")]
        assert await tail(api, run_id=RUN_ID, rank=1) == [(1, 1, "hello from 1")]
        rest = await tail(api, run_id=RUN_ID, cursor=everyone[0].cursor)
        assert rest == [(1, everyone[1].rank, everyone[1].text)]


async def test_following_ends_with_the_attempt_and_misses_nothing(world: World) -> None:
    async with world.agent() as agent:
        await world.place()
        await world.fact(e.AttemptStarted)
        following = asyncio.create_task(tail(api_of(agent, world), run_id=RUN_ID, follow=True))
        for number in range(20):
            world.rank(0).tell(line(f"line {number}"))
            await asyncio.sleep(0.002)
        for rank in (0, 1):
            world.rank(rank).exit(0)
        async with asyncio.timeout(10):
            assert await following == [(1, 0, f"line {number}") for number in range(20)]


async def test_unknown_runs_are_said_to_be_unknown(world: World) -> None:
    async with world.agent() as agent:
        api = api_of(agent, world)
        with pytest.raises(NotFound):
            await tail(api, run_id=uuid7())
        with pytest.raises(CommandRejected, match="no run id"):
            await tail(api, run_id="../../etc")


async def test_an_agent_that_is_starting_asks_for_patience(world: World) -> None:
    with pytest.raises(Unavailable):
        await AgentApi(world.spools).ListAttempts(pb.ListAgentAttemptsRequest(), None)
