"""The agent's facts about one attempt."""

from __future__ import annotations

from dataclasses import replace

from trackway_common.events import (
    AttemptEnded,
    AttemptReclassified,
    AttemptRunning,
    AttemptStarted,
    AttemptStarting,
    AttemptStopping,
    CheckpointAbandoned,
    CheckpointStarted,
    EnvironmentObserved,
    Fact,
    OwnershipClaimed,
    ResumeTargetChosen,
)
from trackway_common.history.model import AttemptHistory, RunHistory
from trackway_common.history.parts import with_attempt


def evolve_attempt(history: RunHistory, number: int, fact: Fact) -> RunHistory:
    """Apply one fact of stream ``attempts/{run}/{number}``."""
    return with_attempt(history, number, lambda attempt: _evolve(attempt, fact))


def _evolve(attempt: AttemptHistory, fact: Fact) -> AttemptHistory:
    match fact:
        case OwnershipClaimed():
            return replace(attempt, claims=attempt.claims + 1)
        case AttemptStarting():
            return replace(attempt, starting=fact)
        case ResumeTargetChosen():
            return replace(attempt, resume=fact)
        case AttemptStarted():
            return replace(attempt, started=fact)
        case EnvironmentObserved():
            return replace(attempt, environments=(*attempt.environments, fact))
        case AttemptRunning():
            return replace(attempt, running=fact)
        case CheckpointStarted():
            return replace(attempt, captures=(*attempt.captures, fact))
        case CheckpointAbandoned():
            return replace(attempt, abandoned=(*attempt.abandoned, fact))
        case AttemptStopping():
            return replace(attempt, stopping=fact)
        case AttemptEnded():
            return replace(attempt, ended=fact)
        case AttemptReclassified():
            return replace(attempt, reclassified=fact)
    return attempt
