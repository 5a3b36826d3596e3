"""Tries as processes and folders: started, taken over, replaced, examined."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from trackway_common.clock import SystemClock
from trackway_common.events import EvaluationFailure
from trackway_evaluator.adapters.evidence_store import EvidenceStore
from trackway_evaluator.adapters.outcomes import Broken, Scored
from trackway_evaluator.adapters.tries import Try, child_environment
from trackway_evaluator.domain.commands import RecordFailure
from trackway_evaluator.shell.examiner import Examiner

from .conftest import World
from .ordering import open_other_end, order_of, tries_of, until


async def test_living_process_is_taken_over(world: World, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    order = order_of(world, wait_for=str(pipe))
    first, second = (tries_of(world, tmp_path) for _ in range(2))
    started = await first.start(order, 1, 8)
    await until(lambda: (tmp_path / f"evaluator/{order.evaluation_id}/1/process.json").exists())
    for found in (await second.find(order, 1), await second.start(order, 1, 8)):
        assert isinstance(found, Try)
        assert found.pid == started.pid
    assert isinstance(found, Try)
    await open_other_end(pipe)
    assert isinstance(await found.outcome(), Scored)
    assert isinstance(await second.find(order, 1), Scored), "it ended while nobody looked"


async def test_stale_process_gives_way_to_the_next_try(world: World, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    order = order_of(world, wait_for=str(pipe))
    stale = await tries_of(world, tmp_path).start(order, 1, 8)
    await until(lambda: (tmp_path / f"evaluator/{order.evaluation_id}/1/process.json").exists())
    fresh = await tries_of(world, tmp_path).start(order, 2, 8)
    outcome = await stale.outcome()
    assert isinstance(outcome, Broken)
    await open_other_end(pipe)
    assert isinstance(await fresh.outcome(), Scored)


async def test_task_executed_differently_is_a_mismatch(world: World, tmp_path: Path) -> None:
    order = order_of(world)
    tries = tries_of(world, tmp_path)
    outcome = await (await tries.start(order, 1, 8)).outcome()
    assert isinstance(outcome, Scored)
    examiner = Examiner(store=EvidenceStore(world.blobs), clock=SystemClock())
    [task] = outcome.result.tasks
    forged = replace(outcome.result, tasks=(replace(task, task_digest="sha256:other"),))
    command = examiner.examine(order, 1, Scored(result=forged), tries.folder(order))
    assert isinstance(command, RecordFailure)
    assert command.failure is EvaluationFailure.TASK_DIGEST_MISMATCH
    (tries.folder(order) / outcome.result.shards[0].path).write_bytes(b"changed")
    command = examiner.examine(order, 1, outcome, tries.folder(order))
    assert isinstance(command, RecordFailure)
    assert "changed after it was written" in command.message


def test_no_password_reaches_an_evaluation_process() -> None:
    environment = {"PATH": "/bin", "TRACKWAY_KAFKA__SASL_PASSWORD": "secret", "TRACKWAY_STACK_ID": "s"}
    inherited = child_environment(environment)
    assert inherited["TRACKWAY_STACK_ID"] == "s"
    assert inherited["PATH"] == "/bin"
    assert "secret" not in inherited.values()
