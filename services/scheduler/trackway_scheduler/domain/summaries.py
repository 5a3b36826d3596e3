"""One line for people per fact of a run."""

from __future__ import annotations

from trackway_common.events import (
    AttemptEnded,
    AttemptPlaced,
    AttemptReclassified,
    AttemptRefused,
    AttemptRunning,
    AttemptStarted,
    AttemptStarting,
    AttemptStopping,
    AttemptWrittenOff,
    CancelRequested,
    CheckpointAbandoned,
    CheckpointCommitted,
    CheckpointDeleted,
    CheckpointHeld,
    CheckpointQuarantined,
    CheckpointRef,
    CheckpointStarted,
    CheckpointSuperseded,
    CheckpointTombstoned,
    CommandRefused,
    EnvironmentObserved,
    EvaluationCompleted,
    EvaluationExhausted,
    EvaluationFailed,
    EvaluationRequested,
    EvaluationStarted,
    Fact,
    FenceRaised,
    FinalEvaluationOrdered,
    HoldReleased,
    NextMove,
    ResumeTargetChosen,
    RetryDecided,
    RunCancelled,
    RunFailed,
    RunHeld,
    RunQueued,
    RunRefused,
    RunReleased,
    RunSubmitted,
    RunSucceeded,
)
from trackway_common.reasons import UNLIMITED


def summary(fact: Fact) -> str:
    """Return the line; empty for facts that are not a run's."""
    return _of_run(fact) or _of_decision(fact) or _of_attempt(fact) or _of_checkpoint(fact) or _of_evaluation(fact)


def _of_run(fact: Fact) -> str:
    match fact:
        case RunSubmitted():
            ranks = fact.spec.topology.world_size
            return f"submitted by {fact.spec.owner}: {ranks} ranks on {fact.spec.compute.compute_class}"
        case RunRefused():
            return f"refused: {fact.message}"
        case RunQueued():
            wait_s = (fact.not_before - fact.queued_at).total_seconds()
            return f"attempt {fact.attempt} queued" + (f", not before {wait_s:.0f} s from now" if wait_s > 0 else "")
        case CancelRequested():
            return f"cancel asked by {fact.actor}" + (f": {fact.reason}" if fact.reason else "")
        case RunHeld():
            return f"held, {fact.reason}: {fact.message}"
        case RunReleased():
            return f"released by {fact.actor}: {fact.reason}"
        case RunSucceeded():
            return "succeeded" + (f" with {_checkpoint(fact.result)}" if fact.result else "")
        case RunFailed():
            return f"failed, {fact.reason}: {fact.message}"
        case RunCancelled():
            return f"cancelled, {fact.reason}"
        case CommandRefused():
            return f"{fact.command} by {fact.actor} refused: {fact.message}"
        case _:
            return ""


def _of_decision(fact: Fact) -> str:
    match fact:
        case AttemptPlaced():
            return (
                f"attempt {fact.attempt} placed on pool {fact.pool}: {len(fact.ranks)} ranks"
                f" after {fact.queue_seconds:.1f} s in the queue"
            )
        case AttemptRefused():
            return f"attempt {fact.attempt} refused, {fact.reason}: {fact.message}"
        case AttemptWrittenOff():
            return f"attempt {fact.attempt} written off, {fact.reason}"
        case RetryDecided():
            return f"{_move(fact)} after {fact.reason}: {fact.why}"
        case FinalEvaluationOrdered():
            return f"evaluation of {_checkpoint(fact.checkpoint)} by pack {fact.pack.name} ordered"
        case _:
            return ""


def _of_attempt(fact: Fact) -> str:
    match fact:
        case AttemptStarting():
            return f"attempt {fact.attempt} starting on agent {fact.agent_id}"
        case ResumeTargetChosen():
            return f"resumes from {_checkpoint(fact.checkpoint)}" if fact.checkpoint else "starts at step 0"
        case AttemptStarted():
            return f"{fact.world_size} ranks started"
        case EnvironmentObserved():
            differs = ", which is not what was pinned" if fact.differs_from_pinned else ""
            return f"rank {fact.rank} runs Python {fact.python_version} on {fact.device or fact.host}{differs}"
        case AttemptRunning():
            return f"first step done: {fact.first_step}"
        case AttemptStopping():
            return f"stopping: {fact.why}"
        case AttemptReclassified():
            return f"attempt {fact.attempt} judged anew, {fact.reason}: {fact.cause or 'no cause given'}"
        case AttemptEnded():
            return (
                f"attempt {fact.attempt} ended, {fact.reason}: {fact.cause or 'no cause given'}"
                f" (steps {fact.first_step} to {fact.last_step})"
            )
        case _:
            return ""


def _of_checkpoint(fact: Fact) -> str:
    match fact:
        case CheckpointStarted():
            return f"checkpoint of step {fact.step} captured in {fact.blocked_seconds * 1000:.0f} ms"
        case CheckpointAbandoned():
            return f"checkpoint of step {fact.step} abandoned: {fact.why}"
        case CheckpointCommitted():
            return f"{_checkpoint(fact.checkpoint)} committed ({fact.size_bytes / 2**20:.1f} MiB)"
        case CheckpointSuperseded():
            return f"checkpoint of step {fact.step} superseded by {fact.by_policy}"
        case CheckpointQuarantined():
            return f"checkpoint in slot {fact.commit_slot} quarantined: {fact.why}"
        case CheckpointHeld():
            return f"checkpoint in slot {fact.commit_slot} held by {fact.consumer}"
        case HoldReleased():
            return f"checkpoint in slot {fact.commit_slot} released by {fact.consumer}"
        case CheckpointTombstoned() | CheckpointDeleted():
            gone = "deleted" if isinstance(fact, CheckpointDeleted) else "marked for deletion"
            return f"checkpoint in slot {fact.commit_slot} {gone}"
        case FenceRaised():
            return f"commit log fenced for epoch {fact.epoch}"
        case _:
            return ""


def _of_evaluation(fact: Fact) -> str:
    match fact:
        case EvaluationRequested():
            return f"evaluation of {_checkpoint(fact.checkpoint)} by pack {fact.pack.name} requested"
        case EvaluationStarted():
            return f"evaluation attempt {fact.evaluation_attempt} started"
        case EvaluationFailed():
            return f"evaluation attempt {fact.evaluation_attempt} failed, {fact.failure}: {fact.message}"
        case EvaluationCompleted():
            return f"evaluation {fact.verdict.lower()}: {_metrics(fact)}"
        case EvaluationExhausted():
            return f"evaluation exhausted, {fact.failure}: {fact.message}"
        case _:
            return ""


def _move(fact: RetryDecided) -> str:
    match fact.move:
        case NextMove.RETRY:
            of = "" if fact.budget == UNLIMITED else f" of {fact.budget}"
            return f"retry {fact.spent}{of} in {fact.backoff_seconds:.0f} s"
        case NextMove.STOP:
            return "no retry"
        case NextMove.HOLD:
            return "held"
        case NextMove.EVALUATE:
            return "on to evaluation"
        case NextMove.UNSPECIFIED:
            return "decided"


def _checkpoint(ref: CheckpointRef) -> str:
    return f"checkpoint of step {ref.step} (epoch {ref.epoch})"


def _metrics(fact: EvaluationCompleted) -> str:
    shown = [
        f"{task.task} {metric.name} {metric.value:.6g}"
        for task in fact.tasks
        for metric in task.metrics
        if metric.primary and not metric.slice
    ]
    return ", ".join(shown) or f"{len(fact.tasks)} tasks"
