"""What a fact says happened, where that can happen only once: facts of two commits may not say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from trackway_common import events as e
from trackway_common.commit import Commit, UnknownFact
from trackway_common.events import Fact

Meaning: TypeAlias = tuple[object, ...]


def repeated(commits: Sequence[Commit]) -> list[tuple[str, Meaning]]:
    """Stream and meaning of what is said to have happened more than once."""
    said = Counter(
        (commit.stream, meaning) for commit in commits for fact in commit.facts if (meaning := once(fact)) is not None
    )
    return [what for what, times in said.items() if times > 1]


def once(fact: Fact | UnknownFact) -> Meaning | None:
    """What of its stream can happen only once; None for a fact that may rightly come again."""
    name = type(fact).__name__
    match fact:
        case e.RunSubmitted() | e.RunRefused():
            return ("answered",)
        case e.RunSucceeded() | e.RunFailed() | e.RunCancelled():
            return ("run ended",)
        case e.RunQueued() | e.AttemptPlaced() | e.AttemptRefused() | e.AttemptWrittenOff() | e.RetryDecided():
            return (name, fact.attempt)
        case e.AttemptStarting() | e.ResumeTargetChosen() | e.AttemptStarted() | e.AttemptRunning():
            return (name,)
        case e.AttemptStopping() | e.AttemptEnded():
            return (name,)
        case e.EnvironmentObserved():
            return (name, fact.rank)
        case e.CheckpointStarted() | e.CheckpointAbandoned():
            return (name, fact.nonce)
        case e.CheckpointCommitted():
            return (name, fact.checkpoint.step, fact.checkpoint.epoch)
        case e.EvaluationStarted() | e.EvaluationFailed():
            return (name, fact.evaluation_id, fact.evaluation_attempt)
        case e.EvaluationCompleted():
            return (name, fact.evaluation_id)
    return None
