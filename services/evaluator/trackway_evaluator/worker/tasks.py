"""A task from its planned samples to its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from trackway_common.dataset_manifest import dataset_files
from trackway_common.evaluation_pack import Capture, TaskSpec, decoding_digest, decoding_json
from trackway_common.events import TaskResult

from trackway_evaluator.protocol import WrittenShard
from trackway_evaluator.worker.aggregate import aggregate
from trackway_evaluator.worker.inputs import Inputs
from trackway_evaluator.worker.progress import Progress
from trackway_evaluator.worker.sample import Row, Sample, samples_of
from trackway_evaluator.worker.sample_store import SampleStore, write_shard
from trackway_evaluator.worker.user_code import load_function

if TYPE_CHECKING:
    from trackway_evaluator.worker.scorers import Scorer


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutcome:
    """What one task leaves."""

    result: TaskResult
    shards: tuple[WrittenShard, ...]


def planned_samples(task: TaskSpec, inputs: Inputs) -> list[Sample]:
    """The task's samples, in the order of its data function, at most its limit.

    Raises:
        CommandRejected: no such split, damaged files, or samples of a wrong form.
    """
    files = dataset_files(inputs.datasets[task.dataset].manifest, task.split)
    yielded = load_function(task.data)(files, task.split, task.limit)
    bounded = islice(yielded, task.limit) if task.limit else yielded
    return list(samples_of(bounded, task.slices, task.data))


def score_all(
    samples: Sequence[Sample], scorer: Scorer, store: SampleStore, progress: Progress, batch_size: int
) -> list[Row]:
    """Rows of all samples in their order; those that an earlier try scored are taken from the store."""
    todo = [sample for sample in samples if store.get(sample.id) is None]
    for start in range(0, len(todo), batch_size):
        store.append(scorer.score(todo[start : start + batch_size]))
        progress.say(scored=len(samples) - len(todo) + min(start + batch_size, len(todo)), planned=len(samples))
    return [row for sample in samples if (row := store.get(sample.id)) is not None]


def outcome(task: TaskSpec, inputs: Inputs, planned: int, rows: Sequence[Row], folder: Path) -> TaskOutcome:
    """Aggregate a task's rows and write its shards below the evaluation's folder."""
    result = TaskResult(
        task=task.id,
        task_version=task.version,
        task_digest=inputs.task_digest(task),
        dataset_digest=inputs.datasets[task.dataset].digest,
        split=task.split,
        planned=planned,
        scored=sum(bool(row.metrics) for row in rows),
        errored=sum(bool(row.error) for row in rows),
        skipped=planned - len(rows),
        metrics=aggregate(task.metrics, rows, task.slices),
        decoding_json=decoding_json(inputs.pack.decoding),
        decoding_digest=decoding_digest(inputs.pack.decoding),
    )
    return TaskOutcome(result=result, shards=_shards(task.id, rows, inputs.pack.capture, folder))


def _shards(task: str, rows: Sequence[Row], capture: Capture, folder: Path) -> tuple[WrittenShard, ...]:
    kept = rows if capture.raw_outputs else [_without_outputs(row) for row in rows]
    shards = [write_shard(folder, task, "samples", kept)]
    failures = [row for row in rows if row.failed or row.error][: capture.failures]
    if failures:
        shards.append(write_shard(folder, task, "failures", failures))
    return tuple(shards)


def _without_outputs(row: Row) -> Row:
    return Row(
        id=row.id,
        metrics=row.metrics,
        weight=row.weight,
        slices=row.slices,
        failed=row.failed,
        error=row.error,
    )
