"""Whether results reach what the pack demands."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from trackway_common.evaluation_pack import Gate, GateOp
from trackway_common.events import GateVerdict, TaskResult, Verdict


def judge(gates: Iterable[Gate], tasks: Iterable[TaskResult]) -> tuple[GateVerdict, ...]:
    """One verdict a gate, with the value it looked at."""
    results = {task.task: task for task in tasks}
    return tuple(_judge(gate, results.get(gate.task)) for gate in gates)


def overall(verdicts: Iterable[GateVerdict]) -> Verdict:
    """FAILED iff a blocking gate failed."""
    missed = any(one.blocking and one.verdict is Verdict.FAILED for one in verdicts)
    return Verdict.FAILED if missed else Verdict.PASSED


def is_partial(task: TaskResult) -> bool:
    """Whether some planned sample has no score; such a result never passes a gate."""
    return task.scored < task.planned or task.scored == 0


def _judge(gate: Gate, task: TaskResult | None) -> GateVerdict:
    value = _value(gate, task)
    passed = value is not None and task is not None and not is_partial(task) and _holds(value, gate.op, gate.threshold)
    return GateVerdict(
        task=gate.task,
        metric=gate.metric,
        op=gate.op.value,
        threshold=gate.threshold,
        value=0.0 if value is None else value,
        blocking=gate.blocking,
        verdict=Verdict.PASSED if passed else Verdict.FAILED,
    )


def _value(gate: Gate, task: TaskResult | None) -> float | None:
    metrics = () if task is None else task.metrics
    return next((one.value for one in metrics if one.name == gate.metric and not one.slice), None)


def _holds(value: float, op: GateOp, threshold: float) -> bool:
    match op:
        case GateOp.AT_LEAST:
            return value >= threshold
        case GateOp.ABOVE:
            return value > threshold
        case GateOp.AT_MOST:
            return value <= threshold
        case GateOp.BELOW:
            return value < threshold
    assert_never(op)
