"""The builtin adapter: scores tasks with torch, in this process."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from trackway_common.evaluation_pack import TaskKind

from trackway_evaluator.protocol import WorkFolder, WorkRequest
from trackway_evaluator.worker.inputs import Inputs
from trackway_evaluator.worker.model import load_model
from trackway_evaluator.worker.progress import Progress
from trackway_evaluator.worker.sample_store import SampleStore
from trackway_evaluator.worker.scorers import scorer_for
from trackway_evaluator.worker.tasks import TaskOutcome, outcome, planned_samples, score_all
from trackway_evaluator.worker.user_code import load_function


def run_builtin(request: WorkRequest, inputs: Inputs, folder: WorkFolder) -> Iterator[TaskOutcome]:
    """Outcome of each task; samples that an earlier try scored are kept."""
    _make_deterministic()
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


def _make_deterministic() -> None:
    # Two threads on a busy machine are slower than one, and sums depend on how many there are.
    torch.set_num_threads(1)
    torch.manual_seed(0)
    # Not use_deterministic_algorithms: that also loads torch's compiler, seconds at every start.
    torch.set_deterministic_debug_mode("warn")
