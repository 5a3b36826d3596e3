"""The service on a log: orders in, facts out, with real evaluation processes in between."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import grpc.aio
import pytest
from trackway_common.codec import decode_commit, decode_request
from trackway_common.event_log import InMemoryEventLog
from trackway_common.events import (
    EvaluationCompleted,
    EvaluationExhausted,
    EvaluationFailed,
    EvaluationFailure,
    EvaluationRequested,
    EvaluationStarted,
    Fact,
    NextMove,
    OwnershipClaimed,
    RunSpec,
    Verdict,
)
from trackway_common.settings import KafkaSettings, StoreSettings
from trackway_common.topics import COMMANDS, EVALUATIONS, RUNS
from trackway_evaluator.service import run_evaluator
from trackway_evaluator.settings import EvaluatorSettings
from trackway_proto.v1 import evaluation_service_pb2, evaluation_service_pb2_grpc

from tests.support.tasks import cancel

from .conftest import COMMAND_PACK, World
from .ordering import DEADLINE_S, open_other_end, order_evaluation, until

F = TypeVar("F")


@dataclass
class Stage:
    """A log with a scheduler that appends what the test says, and what the evaluator made of it."""

    log: InMemoryEventLog
    world: World
    state: Path

    async def order(self, spec: RunSpec, kind: str = "linear") -> str:
        """Submit a run and order its evaluation; return the run's id."""
        return await order_evaluation(self.log, self.world, spec, kind)

    def facts(self, topic: str = EVALUATIONS) -> list[Fact]:
        commits = [decode_commit(record.value) for record in self.log.records(topic)]
        return [fact for c in commits for fact in c.facts if not isinstance(fact, OwnershipClaimed)]  # type: ignore[misc]

    async def fact(self, kind: type[F], count: int = 1) -> F:
        """The count-th fact of a kind, once it is there."""
        async with asyncio.timeout(DEADLINE_S):
            async for _ in self.log.tail(EVALUATIONS, dict.fromkeys(range(12), 0)):
                found = [fact for fact in self.facts() if isinstance(fact, kind)]
                if len(found) >= count:
                    return found[count - 1]
                assert not any(isinstance(fact, EvaluationExhausted) for fact in self.facts()), self.facts()
        raise AssertionError("a tail never ends")


@pytest.fixture
def stage(world: World, tmp_path: Path) -> Stage:
    return Stage(log=InMemoryEventLog(), world=world, state=tmp_path)


@asynccontextmanager
async def evaluator(stage: Stage) -> AsyncIterator[None]:
    """The service, stopped gracefully at the end."""
    settings = EvaluatorSettings(
        kafka=KafkaSettings(bootstrap="unused:1"), store=StoreSettings(url=stage.world.store_url), state=stage.state
    )
    running = asyncio.create_task(run_evaluator(settings, stage.log, os.environ))
    try:
        yield
    finally:
        await cancel(running)


def shape(facts: Sequence[Fact]) -> list[str]:
    return [type(fact).__name__ for fact in facts]


async def test_order_is_carried_out_and_kept(stage: Stage, world: World) -> None:
    run_id = await stage.order(world.spec(world.put_pack()))
    before = len(stage.log.records(RUNS))
    async with evaluator(stage):
        completed = await stage.fact(EvaluationCompleted)
        shown = await listed(stage, run_id)
        await until(lambda: not any((stage.state / "evaluator").iterdir()))
    assert shape(stage.facts()) == ["EvaluationRequested", "EvaluationStarted", "EvaluationCompleted"]
    assert completed.verdict is Verdict.PASSED
    assert completed.gates[0].value == pytest.approx(0.9)
    assert completed.model_family == "toy"
    for shard in completed.shards:
        assert world.blobs.get(shard.digest)[:4] == b"PAR1"
    assert b'"torch"' in world.blobs.get(completed.environment_digest)
    [evaluation] = shown.evaluations
    assert evaluation.result.tasks[0].metrics[0].stderr > 0
    assert evaluation.name == f"projects/demo/evaluations/{completed.evaluation_id}"
    # Training was never spoken to.
    assert len(stage.log.records(RUNS)) == before


async def test_killed_process_costs_a_retry_and_no_training(stage: Stage, world: World, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    await stage.order(world.spec(world.put_pack(), wait_for=str(pipe)))
    before = len(stage.log.records(RUNS))
    async with evaluator(stage):
        started = await stage.fact(EvaluationStarted)
        os.kill(started.pid, signal.SIGKILL)
        failed = await stage.fact(EvaluationFailed)
        await open_other_end(pipe)
        completed = await stage.fact(EvaluationCompleted)
    assert (failed.failure, failed.move, failed.spent, failed.budget) == (
        EvaluationFailure.CRASH,
        NextMove.RETRY,
        1,
        3,
    )
    assert "SIGKILL" in failed.message
    assert completed.evaluation_attempt == 2
    assert completed.verdict is Verdict.PASSED
    assert len(stage.log.records(RUNS)) == before


async def test_crashes_exhaust_their_budget(stage: Stage, world: World) -> None:
    await stage.order(world.spec(world.put_pack(COMMAND_PACK), kill="SIGSEGV"))
    async with evaluator(stage):
        exhausted = await stage.fact(EvaluationExhausted)
    failed = [fact for fact in stage.facts() if isinstance(fact, EvaluationFailed)]
    assert [one.move for one in failed] == [NextMove.RETRY] * 3 + [NextMove.HOLD]
    assert [one.evaluation_attempt for one in failed] == [1, 2, 3, 4]
    assert exhausted.failure is EvaluationFailure.CRASH


async def test_out_of_memory_halves_the_batch(stage: Stage, world: World) -> None:
    await stage.order(world.spec(world.put_pack(), **{"raise": "memory"}))
    async with evaluator(stage):
        await stage.fact(EvaluationExhausted)
    started = [fact for fact in stage.facts() if isinstance(fact, EvaluationStarted)]
    assert [one.batch_size for one in started] == [8, 4, 2]


async def test_missing_pack_is_refused_without_a_process(stage: Stage, world: World) -> None:
    pack = replace(world.put_pack(), digest="sha256:" + "9" * 64)
    await stage.order(world.spec(pack))
    async with evaluator(stage):
        exhausted = await stage.fact(EvaluationExhausted)
    assert exhausted.failure is EvaluationFailure.CONFIG_INVALID
    assert shape(stage.facts()) == ["EvaluationRequested", "EvaluationFailed", "EvaluationExhausted"]


async def test_restart_of_the_evaluator_is_an_interruption(stage: Stage, world: World, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    await stage.order(world.spec(world.put_pack(), wait_for=str(pipe)))
    async with evaluator(stage):
        started = await stage.fact(EvaluationStarted)
    assert not Path(f"/proc/{started.pid}/exe").exists(), "a graceful stop leaves no process"
    async with evaluator(stage):
        failed = await stage.fact(EvaluationFailed)
        await open_other_end(pipe)
        completed = await stage.fact(EvaluationCompleted)
    assert (failed.failure, failed.move) == (EvaluationFailure.INTERRUPTED, NextMove.RETRY)
    assert completed.evaluation_attempt == 2
    async with evaluator(stage):
        await stage.order(world.spec(world.put_pack(COMMAND_PACK), kill="SIGKILL"))
        await stage.fact(EvaluationStarted, 3)
    assert len([fact for fact in stage.facts() if isinstance(fact, EvaluationRequested)]) == 2, "settled is settled"


async def listed(stage: Stage, run_id: str) -> evaluation_service_pb2.ListEvaluationsResponse:
    """Ask the service at the address that its heartbeat tells."""
    async with asyncio.timeout(DEADLINE_S):
        async for batch in stage.log.tail(COMMANDS, {0: 0}):
            for record in batch:
                request = decode_request(record.value)
                assert request is not None
                async with grpc.aio.insecure_channel(request.body.endpoint) as channel:  # type: ignore[union-attr]
                    stub = evaluation_service_pb2_grpc.EvaluationServiceStub(channel)
                    return await stub.ListEvaluations(evaluation_service_pb2.ListEvaluationsRequest(parent=run_id))
    raise AssertionError("a tail never ends")
