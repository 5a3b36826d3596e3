"""How often an evaluation is tried again, per failure: the evaluator's own budgets, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from trackway_common.events import EvaluationFailure

RETRIES: Mapping[EvaluationFailure, int] = MappingProxyType(
    {
        EvaluationFailure.UNSPECIFIED: 0,
        EvaluationFailure.CRASH: 3,
        EvaluationFailure.OOM: 2,
        EvaluationFailure.JUDGE_ERROR: 8,
        EvaluationFailure.TASK_DIGEST_MISMATCH: 0,
        EvaluationFailure.CONFIG_INVALID: 0,
        # The evaluator's own restarts say nothing about the evaluation; the bound only ends a loop in
        # which the evaluation itself takes its evaluator down.
        EvaluationFailure.INTERRUPTED: 20,
    }
)
"""Failures of one round that are followed by another try; one more exhausts the evaluation."""


def batch_size(asked: int, out_of_memory: int) -> int:
    """Samples at once after so many out-of-memory failures: half each time, never below one."""
    return max(1, asked >> out_of_memory)
