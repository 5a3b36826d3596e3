"""The trainer-agent on a real Ray head, with real processes that really train."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from trackway_common import events as e
from trackway_common.events import Authority, CausalRole
from trackway_common.events import TerminationReason as Reason
from trackway_common.ids import uuid7
from trackway_common.rpc_client import open_channel
from trackway_proto.v1 import agent_service_pb2 as pb
from trackway_proto.v1 import agent_service_pb2_grpc

from tests.integration.agent_stack import Stack
from tests.ray_head import RayHead, ray_head


@pytest.fixture(scope="module")
def head() -> Iterator[RayHead]:
    with ray_head(cpus=4) as started:
        yield started


@pytest.fixture
def stack(tmp_path: Path, head: RayHead, monkeypatch: pytest.MonkeyPatch) -> Stack:
    for name, value in head.environment.items():
        monkeypatch.setenv(name, value)
    return Stack(tmp_path, head, uuid7())


async def test_a_killed_trainer_is_explained_and_the_next_attempt_resumes(stack: Stack) -> None:
    async with stack.checkpointer(), stack.agent():
        await stack.submit(steps=60)
        await stack.place(1)
        started = await stack.fact(e.AttemptStarted, 1)
        await stack.until(lambda: stack.committed())
        os.kill(started.ranks[1].trainer_pid, signal.SIGKILL)
        ended = await stack.fact(e.AttemptEnded, 1)
        assert (ended.reason, ended.blamed_rank) == (Reason.UNKNOWN_KILL, 1)
        parts = {(item.rank, item.authority): item.role for item in ended.evidence}
        assert parts[1, Authority.EXIT_STATUS] is CausalRole.INITIATING
        assert {part for (rank, _), part in parts.items() if rank == 0} <= {
            CausalRole.CASCADE,
            CausalRole.TEARDOWN,
            CausalRole.UNKNOWN,
        }
        assert {rank.rank: rank.signal for rank in ended.ranks}[1] == "SIGKILL"
        assert ended.last_step >= 10
        assert ended.gpu_seconds > 0

        await stack.place(2, captures_in_flight=ended.captures_in_flight)
        chosen = await stack.fact(e.ResumeTargetChosen, 2)
        running = await stack.fact(e.AttemptRunning, 2)
        assert chosen.checkpoint.step == ended.last_committed.step or ended.captures_in_flight
        assert running.first_step == chosen.checkpoint.step + 1
        finished = await stack.fact(e.AttemptEnded, 2)
        await stack.until(lambda: 60 in stack.committed())
    assert (finished.reason, finished.last_step) == (Reason.COMPLETED, 60)
    assert finished.resumed_from == chosen.checkpoint
    assert stack.steps(2)[-1] == 60
    environments = [fact for fact in stack.facts(1) if isinstance(fact, e.EnvironmentObserved)]
    heartbeat = stack.requests(e.AgentHeartbeat)[-1]
    assert {fact.environment_digest for fact in environments} == {heartbeat.environment_digest}
    assert (heartbeat.cpus, heartbeat.pool, heartbeat.agent_id) == (4.0, "local", "agent-local")


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
            async with open_channel(endpoint) as channel:
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


async def test_cancelling_ends_the_processes(stack: Stack) -> None:
    async with stack.agent():
        await stack.submit(steps=100_000)
        await stack.place(1)
        started = await stack.fact(e.AttemptStarted, 1)
        await stack.fact(e.AttemptRunning, 1)
        await stack.order(e.CancelRequested(reason="enough", actor="ada", requested_at=started.started_at))
        ended = await stack.fact(e.AttemptEnded, 1)
        await stack.until(lambda: not any(_alive(rank.trainer_pid) for rank in started.ranks))
    assert ended.reason is Reason.CANCELLED_BY_USER
    assert "AttemptStopping" in stack.names(1)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
