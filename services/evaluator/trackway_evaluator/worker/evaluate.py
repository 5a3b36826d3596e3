"""One try from request to result."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from importlib.metadata import version

from trackway_common.evaluation_pack import Adapter

from trackway_evaluator.protocol import WorkFolder, WorkRequest, WorkResult
from trackway_evaluator.worker.command import run_command
from trackway_evaluator.worker.environment import environment_json
from trackway_evaluator.worker.inputs import Inputs, gather
from trackway_evaluator.worker.tasks import TaskOutcome, outcome


def evaluate(request: WorkRequest, folder: WorkFolder) -> WorkResult:
    """Run every task of the pack.

    Raises:
        CommandRejected: the inputs don't fit together; another try would end the same way.
    """
    began = time.monotonic()
    attempt = folder.attempt(request.attempt)
    code = attempt / "code"
    try:
        inputs = gather(request, code)
        outcomes = list(_outcomes(request, inputs, folder))
    finally:
        shutil.rmtree(code, ignore_errors=True)
    return WorkResult(
        tasks=tuple(one.result for one in outcomes),
        shards=tuple(shard for one in outcomes for shard in one.shards),
        environment_json=environment_json(),
        evaluator_version=version("trackway"),
        seconds=time.monotonic() - began,
    )


def _outcomes(request: WorkRequest, inputs: Inputs, folder: WorkFolder) -> Iterator[TaskOutcome]:
    if inputs.pack.evaluator.adapter is Adapter.COMMAND:
        rows = run_command(request, inputs, folder.attempt(request.attempt))
        for task in inputs.pack.tasks:
            yield outcome(task, inputs, len(rows[task.id]), rows[task.id], folder.path)
        return
    # A command needs no torch here, and loading it takes seconds.
    from trackway_evaluator.worker.builtin import run_builtin

    yield from run_builtin(request, inputs, folder)
