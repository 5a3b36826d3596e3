"""The evaluator's facts: evaluations and their own attempts."""

from __future__ import annotations

from dataclasses import replace

from trackway_common.events import (
    EvaluationCompleted,
    EvaluationExhausted,
    EvaluationFailed,
    EvaluationPhase,
    EvaluationRequested,
    EvaluationStarted,
    Fact,
)
from trackway_common.history.model import EvaluationHistory, EvaluationTry, RunHistory
from trackway_common.history.parts import with_evaluation


def evolve_evaluations(history: RunHistory, fact: Fact) -> RunHistory:
    """Apply one fact of stream ``evaluations/{run}``."""
    match fact:
        case EvaluationRequested() | EvaluationStarted() | EvaluationFailed():
            return with_evaluation(history, fact.evaluation_id, lambda evaluation: _evolve(evaluation, fact))
        case EvaluationCompleted() | EvaluationExhausted():
            return with_evaluation(history, fact.evaluation_id, lambda evaluation: _evolve(evaluation, fact))
    return history


def _evolve(evaluation: EvaluationHistory, fact: Fact) -> EvaluationHistory:
    match fact:
        case EvaluationRequested():
            return replace(evaluation, requested=fact)
        case EvaluationStarted():
            begun = EvaluationTry(number=fact.evaluation_attempt, started=fact)
            return replace(evaluation, phase=EvaluationPhase.RUNNING, tries=(*evaluation.tries, begun))
        case EvaluationFailed():
            return _with_failure(evaluation, fact)
        case EvaluationCompleted():
            return replace(evaluation, phase=EvaluationPhase.COMPLETED, completed=fact)
        case EvaluationExhausted():
            return replace(evaluation, phase=EvaluationPhase.EXHAUSTED, exhausted=fact)
    return evaluation


def _with_failure(evaluation: EvaluationHistory, failed: EvaluationFailed) -> EvaluationHistory:
    """A try may fail before it was said to have started, such as for a broken pack."""
    number = failed.evaluation_attempt
    known = {attempt.number: attempt for attempt in evaluation.tries}
    known[number] = replace(known.get(number, EvaluationTry(number=number)), failed=failed)
    return replace(evaluation, tries=tuple(known[n] for n in sorted(known)))
