"""What a pack's parts say about each other, and about the run that it is for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from trackway_common.errors import FieldViolation
from trackway_common.evaluation_pack.model import METRICS_OF, Adapter, EvaluationPack, Gate, TaskKind, TaskSpec
from trackway_common.fields import nearest


def check_against(
    pack: EvaluationPack, dataset_names: Collection[str], *, name: str = "evaluation_pack"
) -> tuple[FieldViolation, ...]:
    """What of the pack the run can't serve: tasks on datasets that the run doesn't name."""
    return tuple(
        FieldViolation(
            field=f"{name}.tasks[{i}].dataset",
            description=f"{task.dataset!r} is not a dataset of the run{nearest(task.dataset, dataset_names)}"
            f"; the run has {', '.join(sorted(dataset_names)) or 'none'}",
        )
        for i, task in enumerate(pack.tasks)
        if task.dataset not in dataset_names
    )


def check_whole(pack: EvaluationPack, name: str) -> tuple[FieldViolation, ...]:
    """Contradictions inside a pack whose fields are each well formed."""
    found = [*_evaluator(pack), *_tasks(pack), *_gates(pack)]
    return tuple(FieldViolation(field=f"{name}.{field}", description=text) for field, text in found)


def _evaluator(pack: EvaluationPack) -> Iterator[tuple[str, str]]:
    has_command = bool(pack.evaluator.command)
    if pack.evaluator.adapter is Adapter.COMMAND and not has_command:
        yield "evaluator.command", "is required by the command adapter: its argv as a list"
    if pack.evaluator.adapter is Adapter.BUILTIN and has_command:
        yield "evaluator.command", "belongs to the command adapter; the builtin one has none"


def _tasks(pack: EvaluationPack) -> Iterator[tuple[str, str]]:
    if not pack.tasks:
        yield "tasks", "must name at least one task"
    for i in _repeated([task.id for task in pack.tasks]):
        yield f"tasks[{i}].id", f"{pack.tasks[i].id!r} stands twice"
    for i, task in enumerate(pack.tasks):
        for field, text in _task(task, pack.evaluator.adapter):
            yield f"tasks[{i}].{field}", text


def _task(task: TaskSpec, adapter: Adapter) -> Iterator[tuple[str, str]]:
    if (task.kind is TaskKind.COMMAND) != (adapter is Adapter.COMMAND):
        yield "kind", f"{task.kind.value!r} can't be run by the {adapter.value} adapter"
    if task.decode and task.kind is not TaskKind.COMPLETION:
        yield "decode", "belongs to completion tasks"
    names = [metric.name for metric in task.metrics]
    if not names:
        yield "metrics", "must name what the command reports"
    for j in _repeated(names):
        yield f"metrics[{j}].name", f"{names[j]!r} stands twice"
    if sum(metric.primary for metric in task.metrics) > 1:
        yield "metrics", "at most one may be primary"
    known = METRICS_OF[task.kind]
    for j, metric in enumerate(names):
        if known and metric not in known:
            options = ", ".join(known)
            yield (
                f"metrics[{j}].name",
                f"{metric!r} is no metric of {task.kind.value}{nearest(metric, known)}; one of {options}",
            )


def _gates(pack: EvaluationPack) -> Iterator[tuple[str, str]]:
    tasks = {task.id: task for task in pack.tasks}
    for i, gate in enumerate(pack.gates):
        for field, text in _gate(gate, tasks):
            yield f"gates[{i}].{field}", text


def _gate(gate: Gate, tasks: dict[str, TaskSpec]) -> Iterator[tuple[str, str]]:
    task = tasks.get(gate.task)
    if task is None:
        yield "task", f"the pack names no task {gate.task!r}{nearest(gate.task, tasks)}; one of {', '.join(tasks)}"
        return
    names = [metric.name for metric in task.metrics]
    if gate.metric not in names:
        yield (
            "metric",
            f"task {task.id!r} reports no {gate.metric!r}{nearest(gate.metric, names)}; one of {', '.join(names)}",
        )


def _repeated(names: Iterable[str]) -> Iterator[int]:
    seen: set[str] = set()
    for i, name in enumerate(names):
        if name in seen:
            yield i
        seen.add(name)
