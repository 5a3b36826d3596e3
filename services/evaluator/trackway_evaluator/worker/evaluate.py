"""One try from request to result."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from importlib.metadata import version

import torch
from trackway_common.evaluation_pack import Adapter, TaskKind

from trackway_evaluator.protocol import WorkFolder, WorkRequest, WorkResult
from trackway_evaluator.worker.command import run_command
from trackway_evaluator.worker.environment import environment_json
from trackway_evaluator.worker.inputs import Inputs, gather
from trackway_evaluator.worker.model import load_model
from trackway_evaluator.worker.progress import Progress
from trackway_evaluator.worker.sample_store import SampleStore
from trackway_evaluator.worker.scorers import scorer_for
from trackway_evaluator.worker.tasks import TaskOutcome, outcome, planned_samples, score_all
from trackway_evaluator.worker.user_code import load_function


def evaluate(request: WorkRequest, folder: WorkFolder) -> WorkResult:
    """Run every task of the pack; samples that an earlier try scored are kept.

    Raises:
        CommandRejected: the inputs don't fit together; another try would end the same way.
    """
    began = time.monotonic()
    _make_deterministic()
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


def _make_deterministic() -> None:
    # Two threads on a busy machine are slower than one, and sums depend on how many there are.
    torch.set_num_threads(1)
    torch.manual_seed(0)
    # Not use_deterministic_algorithms: that also loads torch's compiler, seconds at every start.
    torch.set_deterministic_debug_mode("warn")


def _outcomes(request: WorkRequest, inputs: Inputs, folder: WorkFolder) -> Iterator[TaskOutcome]:
    if inputs.pack.evaluator.adapter is Adapter.COMMAND:
        rows = run_command(request, inputs, folder.attempt(request.attempt))
        for task in inputs.pack.tasks:
            yield outcome(task, inputs, len(rows[task.id]), rows[task.id], folder.path)
        return
    yield from _builtin(request, inputs, folder)


def _builtin(request: WorkRequest, inputs: Inputs, folder: WorkFolder) -> Iterator[TaskOutcome]:
    model = load_model(inputs.store, request.checkpoint, request.model, request.hyperparameters_json)
    progress = Progress(folder.attempt(request.attempt) / "progress.jsonl")
    for task in inputs.pack.tasks:
        decode = load_function(task.decode) if task.kind is TaskKind.COMPLETION and task.decode else None
        scorer = scorer_for(task, inputs.pack.decoding, model, decode)
        samples = planned_samples(task, inputs)
        progress.say(task=task.id, planned=len(samples))
        # Named by the digest as executed: rows of another definition or of other data are never mixed in.
        store = SampleStore(folder.samples / f"{task.id}-{inputs.task_digest(task)[7:23]}")
        rows = score_all(samples, scorer, store, progress, request.batch_size)
        yield outcome(task, inputs, len(samples), rows, folder.path)
