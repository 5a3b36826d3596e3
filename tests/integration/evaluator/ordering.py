"""A scheduler's part: orders of evaluations, on a log or by hand; and waiting for processes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from trackway_common.clock import SystemClock
from trackway_common.commit import CommandContext
from trackway_common.decider import Decider
from trackway_common.evaluation_pack import evaluation_identity
from trackway_common.event_log import EventLog
from trackway_common.events import Fact, FinalEvaluationOrdered, RunSpec, RunSubmitted
from trackway_common.ids import run_stream, uuid7
from trackway_common.partitioner import partition_of
from trackway_common.stream_owner import StreamOwner, Writer
from trackway_common.topics import RUNS
from trackway_evaluator.adapters.tries import Tries, child_environment
from trackway_evaluator.domain.order import Order

from .conftest import World

DEADLINE_S = 120.0
NOW = datetime(2026, 11, 21, tzinfo=UTC)


async def order_evaluation(log: EventLog, world: World, spec: RunSpec, kind: str = "linear") -> str:
    """Append the facts of a run that has ended its training; return its id."""
    run_id, checkpoint = uuid7(), world.checkpoints[kind]
    order = FinalEvaluationOrdered(
        evaluation_id=evaluation_identity(spec.evaluation_pack.digest, checkpoint.manifest_digest, run_id),
        pack=spec.evaluation_pack,
        checkpoint=checkpoint,
        ordered_at=NOW,
    )
    submitted = RunSubmitted(run_id=run_id, spec=spec, submitted_at=NOW)
    await _append(log, run_id, (submitted, order))
    return run_id


async def _append(log: EventLog, run_id: str, facts: tuple[Fact, ...]) -> None:
    decider: Decider[None, tuple[Fact, ...]] = Decider(lambda s: None, lambda s, c: c, lambda s, f: None)
    owner = StreamOwner(
        event_log=log,
        topic=RUNS,
        decider=decider,
        writer=Writer(writer_id=uuid7(), endpoint=""),
        clock=SystemClock(),
        ids=uuid7,
    )
    folding = asyncio.create_task(owner.run())
    partition = partition_of(run_id.encode(), await log.partition_count(RUNS))
    await owner.claim(f"partitions/{partition}")
    await owner.execute(run_stream(run_id), facts, CommandContext(command_id=uuid7(), actor="test"))
    folding.cancel()


def order_of(world: World, **hyperparameters: object) -> Order:
    pack, checkpoint = world.put_pack(), world.checkpoints["linear"]
    return Order(
        run_id=uuid7(),
        order_id=uuid7(),
        evaluation_id="e1",
        round=1,
        pack=pack,
        checkpoint=checkpoint,
        ordered_at=NOW,
        spec=world.spec(pack, **hyperparameters),
        traceparent="",
    )


def tries_of(world: World, state: Path) -> Tries:
    return Tries(
        root=state / "evaluator",
        store_url=world.store_url,
        environment=child_environment(os.environ),
    )


async def open_other_end(pipe: Path) -> None:
    """Let the process that opened the pipe for reading go on."""
    await asyncio.to_thread(lambda: pipe.open("w").close())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that only a look at the disk can tell."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.02)
