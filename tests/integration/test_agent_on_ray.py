"""The trainer-agent on a real Ray head: it leaves and comes back, then the head does.

What an attempt goes through while both are there is tested with the whole stack (tests/e2e).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grpc.aio
import pytest
from trackway_common import events as e
from trackway_common.events import TerminationReason as Reason
from trackway_common.ids import uuid7
from trackway_proto.v1 import agent_service_pb2 as pb
from trackway_proto.v1 import agent_service_pb2_grpc

from tests.integration.agent_stack import Stack
from tests.ray_head import RayHead, kill_head, ray_head

COUNT = """
import time
for step in range(100_000):
    print(step, flush=True)
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def head() -> Iterator[RayHead]:
    with ray_head(cpus=4) as started:
        yield started


@pytest.fixture
def stack(tmp_path: Path, head: RayHead, monkeypatch: pytest.MonkeyPatch) -> Stack:
    for name, value in head.environment.items():
        monkeypatch.setenv(name, value)
    return Stack(tmp_path, head, uuid7())


async def test_training_goes_on_while_the_agent_is_away(stack: Stack) -> None:
    async with stack.checkpointer():
        async with stack.agent():
            await stack.submit(steps=150)
            await stack.place(1)
            started = await stack.fact(e.AttemptStarted, 1)
            await stack.until(lambda: stack.steps(1))
        before = stack.steps(1)[-1]
        alive = [_alive(rank.trainer_pid) for rank in started.ranks]
        async with stack.agent():
            await stack.until(lambda: stack.steps(1)[-1] > before)
            endpoint = (await stack.until(lambda: stack.requests(e.AgentHeartbeat)))[-1].endpoint
            async with grpc.aio.insecure_channel(endpoint) as channel:
                api = agent_service_pb2_grpc.AgentServiceStub(channel)
                (shown,) = (await api.ListAttempts(pb.ListAgentAttemptsRequest())).attempts
                printed = [
                    line.text
                    async for line in api.TailLogs(pb.TailLogsRequest(run_id=stack.run_id, follow=True, rank=0))
                ]
            ended = await stack.fact(e.AttemptEnded, 1)
    assert alive == [True, True]
    assert [rank.trainer_pid for rank in shown.ranks] == [rank.trainer_pid for rank in started.ranks]
    assert (ended.reason, ended.last_step) == (Reason.COMPLETED, 150)
    assert sorted(set(stack.steps(1))) == list(range(1, 151))
    assert printed == [f"step {step}" for step in range(1, 151)]
    kinds = Counter(stack.names(1))
    assert {kinds[name] for name in ("AttemptStarting", "ResumeTargetChosen", "AttemptStarted", "AttemptRunning")} == {
        1
    }
    assert kinds["AttemptEnded"] == 1


async def test_a_head_that_was_killed_and_came_back(stack: Stack, head: RayHead) -> None:
    async with stack.agent():
        await stack.submit(steps=1, script=COUNT)
        await stack.place(1)
        started = await stack.fact(e.AttemptStarted, 1)
        kill_head(head)
        with ray_head(cpus=4, again=head):
            ended = await stack.fact(e.AttemptEnded, 1)
            await stack.place(2)
            again = await stack.fact(e.AttemptStarted, 2)
    assert ended.reason is Reason.NODE_LOST
    assert (ended.ended_at - started.started_at).total_seconds() < 60
    assert started.cluster_id != again.cluster_id
    assert started.cluster_id in ended.evidence[0].excerpt
    assert [rank.exit_code for rank in ended.ranks] == []


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
