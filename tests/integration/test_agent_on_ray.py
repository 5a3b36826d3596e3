"""The trainer-agent on a real Ray head: it leaves and comes back, actors die, and the head does.

What an attempt goes through while both are there is tested with the whole stack (tests/e2e).
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grpc.aio
import pytest
from trackway_common import events as e
from trackway_common.events import Authority, CausalRole
from trackway_common.events import TerminationReason as Reason
from trackway_common.ids import uuid7
from trackway_proto.v1 import agent_service_pb2 as pb
from trackway_proto.v1 import agent_service_pb2_grpc

from tests.integration.agent_stack import Stack
from tests.ray_head import RayHead, kill_head, ray_head
from tests.support.ranks import actor_of, parent_of

FAMILY = """
import multiprocessing, subprocess, time
subprocess.Popen("sleep 1000 & setsid sleep 1000 & wait", shell=True)
multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,)).start()
for step in range(100_000):
    print(step, flush=True)
    time.sleep(0.05)
"""
"""A rank with a shell's commands, one of them in a session of its own, and a worker."""
LOADS = """
import subprocess, time
from torch.utils.data import DataLoader
subprocess.Popen("sleep 1000 & setsid sleep 1000 & wait", shell=True)
for _ in DataLoader(range(10**6), num_workers=1):
    time.sleep(0.05)
"""
"""The same; the worker is a DataLoader's."""
KILLS_ACTOR = """
import sys, ray
ray.init(address=sys.argv[1], namespace="trackway", _node_ip_address="127.0.0.1", log_to_driver=False)
actor = ray.get_actor(sys.argv[2])
print("found", flush=True)
sys.stdin.readline()
ray.kill(actor)
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
            await stack.submit()
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
                printed = []
                async for line in api.TailLogs(pb.TailLogsRequest(run_id=stack.run_id, follow=True, rank=0)):
                    printed.append(line.text)
                    stack.stop_file.touch()
            ended = await stack.fact(e.AttemptEnded, 1)
    assert alive == [True, True]
    assert [rank.trainer_pid for rank in shown.ranks] == [rank.trainer_pid for rank in started.ranks]
    assert ended.reason is Reason.COMPLETED
    assert ended.last_step > before
    assert sorted(set(stack.steps(1))) == list(range(1, ended.last_step + 1))
    assert printed == [f"step {step}" for step in range(1, ended.last_step + 1)]
    kinds = Counter(stack.names(1))
    assert {kinds[name] for name in ("AttemptStarting", "ResumeTargetChosen", "AttemptStarted", "AttemptRunning")} == {
        1
    }
    assert kinds["AttemptEnded"] == 1


async def test_nothing_is_left_of_actors_that_were_killed_either_way(stack: Stack, head: RayHead) -> None:
    async with stack.agent():
        await stack.submit(LOADS)
        await stack.place(1)
        started = await stack.fact(e.AttemptStarted, 1)
        killer = subprocess.Popen(
            [sys.executable, "-c", KILLS_ACTOR, head.address, started.ranks[1].actor],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert killer.stdin is not None
        assert killer.stdout is not None
        await stack.until(lambda: grown_up(stack.run_id))
        assert await asyncio.to_thread(killer.stdout.readline) == b"found\n"
        killer.stdin.close()
        os.kill(actor_of(started.ranks[0].trainer_pid), signal.SIGKILL)
        await stack.until(lambda: not family(stack.run_id))
        ended = await stack.fact(e.AttemptEnded, 1)
        await asyncio.to_thread(killer.wait)
    assert ended.reason is Reason.UNKNOWN_KILL
    # Of a death without a reason Ray knows no more than the process's end.
    root = ended.evidence[0]
    assert (root.role, root.authority) == (CausalRole.INITIATING, Authority.EXIT_STATUS)
    assert "as Ray recorded it" in root.source
    assert Authority.SUBSTRATE not in {seen.authority for seen in ended.evidence}


async def test_the_next_attempt_gets_the_actors_and_a_written_off_one_loses_its_ranks(stack: Stack) -> None:
    async with stack.agent():
        await stack.submit(FAMILY)
        await stack.place(1)
        first = await stack.fact(e.AttemptStarted, 1)
        actors = [actor_of(rank.trainer_pid) for rank in first.ranks]
        await stack.until(lambda: grown_up(stack.run_id))
        os.kill(first.ranks[0].trainer_pid, signal.SIGKILL)
        await stack.fact(e.AttemptEnded, 1)
        await stack.until(lambda: not family(stack.run_id))
        await stack.place(2)
        second = await stack.fact(e.AttemptStarted, 2)
        assert [actor_of(rank.trainer_pid) for rank in second.ranks] == actors
        assert [rank.actor for rank in second.ranks] == [rank.actor for rank in first.ranks]
    await stack.order(e.AttemptWrittenOff(attempt=2, reason=Reason.AGENT_LOST, written_off_at=second.started_at))
    assert family(stack.run_id)
    async with stack.agent():
        ended = await stack.fact(e.AttemptEnded, 2)
        await stack.until(lambda: not family(stack.run_id) and not any(_alive(pid) for pid in actors))
    assert ended.reason is Reason.AGENT_LOST


async def test_a_head_that_was_killed_and_came_back(stack: Stack, head: RayHead) -> None:
    async with stack.agent():
        await stack.submit(FAMILY)
        await stack.place(1)
        started = await stack.fact(e.AttemptStarted, 1)
        await stack.until(lambda: grown_up(stack.run_id))
        kill_head(head)
        await stack.until(lambda: not family(stack.run_id))
        with ray_head(cpus=4, again=head):
            ended = await stack.fact(e.AttemptEnded, 1)
            await stack.place(2)
            again = await stack.fact(e.AttemptStarted, 2)
            await stack.until(lambda: grown_up(stack.run_id))
            os.kill(raylet_of(again.ranks[0].trainer_pid), signal.SIGKILL)
            await stack.until(lambda: not family(stack.run_id))
            ended_again = await stack.fact(e.AttemptEnded, 2)
    assert ended.reason is Reason.NODE_LOST
    assert (ended.ended_at - started.started_at).total_seconds() < 60
    assert started.cluster_id != again.cluster_id
    assert started.cluster_id in ended.evidence[0].excerpt
    assert [rank.exit_code for rank in ended.ranks] == []
    assert ended_again.reason is Reason.NODE_LOST


def family(run_id: str) -> list[int]:
    """Every process of the run, whatever session or parent it has: each inherits the run's id."""
    marked = f"TRACKWAY_RUN_ID={run_id}".encode()
    return [int(entry.name) for entry in Path("/proc").iterdir() if marked in _read(entry / "environ").split(b"\0")]


def grown_up(run_id: str) -> bool:
    """Both ranks have all that they start: two commands of a shell, and a worker beside the trainer itself."""
    lines = [_read(Path(f"/proc/{pid}/cmdline")).split(b"\0") for pid in family(run_id)]
    sleeps, trainers = (
        sum(line[0] == b"sleep" for line in lines),
        sum(line[2:3] != [] and line[2].endswith(b"train.py") for line in lines),
    )
    return (sleeps, trainers) == (4, 4)


def raylet_of(trainer: int) -> int:
    """The raylet that started a trainer's actor."""
    pid = actor_of(trainer)
    while b"raylet" not in _read(Path(f"/proc/{pid}/comm")):
        pid = parent_of(pid)
    return pid


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, NotADirectoryError):
        return b""


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
