"""Replace one part of a history; shared by the folds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from trackway_common.history.model import AttemptHistory, EvaluationHistory, RunHistory

_ATTEMPT_STREAM = re.compile(r"attempts/[^/]+/([0-9]{1,9})")

AttemptChange = Callable[[AttemptHistory], AttemptHistory]
EvaluationChange = Callable[[EvaluationHistory], EvaluationHistory]


def attempt_number(stream: str) -> int | None:
    """Number in ``attempts/{run}/{n}``; None for any other stream."""
    match = _ATTEMPT_STREAM.fullmatch(stream)
    return int(match[1]) if match else None


def with_attempt(history: RunHistory, number: int, change: AttemptChange) -> RunHistory:
    """Change one attempt, which begins to exist when it was not there."""
    changed = change(history.attempt(number) or AttemptHistory(attempt=number))
    others = [attempt for attempt in history.attempts if attempt.attempt != number]
    ordered = sorted([*others, changed], key=lambda attempt: attempt.attempt)
    return replace(history, attempts=tuple(ordered))


def with_evaluation(history: RunHistory, evaluation_id: str, change: EvaluationChange) -> RunHistory:
    """Change one evaluation, which is appended when it was not there."""
    for i, evaluation in enumerate(history.evaluations):
        if evaluation.evaluation_id == evaluation_id:
            parts = (*history.evaluations[:i], change(evaluation), *history.evaluations[i + 1 :])
            return replace(history, evaluations=parts)
    added = change(EvaluationHistory(evaluation_id=evaluation_id))
    return replace(history, evaluations=(*history.evaluations, added))
