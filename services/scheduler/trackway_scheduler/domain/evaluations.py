"""How a final evaluation concludes a run. Nothing here can cost a training attempt: no return type has one."""

from __future__ import annotations

from typing import TypeAlias

from trackway_common.events import RunFailed, RunHeld, RunSucceeded, Verdict

from trackway_scheduler.domain.commands import RecordEvaluationCompleted, RecordEvaluationExhausted
from trackway_scheduler.domain.state import RunState

GATE_FAILED = "GATE_FAILED"
EVALUATION_EXHAUSTED = "EVALUATION_EXHAUSTED"

Conclusion: TypeAlias = RunSucceeded | RunFailed | RunHeld
"""All that an evaluation can do to its run."""
EvaluationOutcome: TypeAlias = RecordEvaluationCompleted | RecordEvaluationExhausted


def conclude(state: RunState, outcome: EvaluationOutcome) -> Conclusion:
    """Return how the run ends, or that it waits for a person."""
    match outcome:
        case RecordEvaluationCompleted(verdict=Verdict.PASSED):
            result = state.evaluation.checkpoint if state.evaluation else None
            return RunSucceeded(result=result, ended_at=outcome.at)
        case RecordEvaluationCompleted(verdict=Verdict.FAILED):
            gates = "; ".join(outcome.failed_gates) or "a blocking gate"
            return RunFailed(reason=GATE_FAILED, message=f"The evaluation failed: {gates}.", ended_at=outcome.at)
        case RecordEvaluationCompleted():
            message = "The evaluation completed without a verdict that this scheduler knows; upgrade it, then release."
            return RunHeld(reason=EVALUATION_EXHAUSTED, message=message, held_at=outcome.at)
        case RecordEvaluationExhausted():
            message = f"The evaluation used up its own retries: {outcome.message} The checkpoint stays committed."
            return RunHeld(reason=EVALUATION_EXHAUSTED, message=message, held_at=outcome.at)
