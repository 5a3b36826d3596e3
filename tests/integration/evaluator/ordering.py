"""A scheduler's part: submit a run and order its evaluation."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

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

from .conftest import World

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
