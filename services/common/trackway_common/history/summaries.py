"""One line for people about each fact, and when it happened by its own account."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from trackway_common import events as e
from trackway_common.commit import UnknownFact
from trackway_common.history.wording import (
    bytes_text,
    count_text,
    moment,
    number_text,
    one_line,
    seconds_text,
    short_digest,
)

EXCERPT = 160

_TIME_FIELDS: Mapping[type, str] = MappingProxyType(
    {
        e.RunSubmitted: "submitted_at",
        e.RunRefused: "refused_at",
        e.RunQueued: "queued_at",
        e.AttemptPlaced: "placed_at",
        e.AttemptRefused: "refused_at",
        e.AttemptWrittenOff: "written_off_at",
        e.RetryDecided: "decided_at",
        e.FinalEvaluationOrdered: "ordered_at",
        e.CancelRequested: "requested_at",
        e.RunHeld: "held_at",
        e.RunReleased: "released_at",
        e.RunSucceeded: "ended_at",
        e.RunFailed: "ended_at",
        e.RunCancelled: "ended_at",
        e.DatasetRegistered: "registered_at",
        e.EvaluationPackRegistered: "registered_at",
        e.PoolObserved: "observed_at",
        e.AttemptStarting: "starting_at",
        e.ResumeTargetChosen: "chosen_at",
        e.AttemptStarted: "started_at",
        e.AttemptRunning: "first_step_at",
        e.CheckpointStarted: "started_at",
        e.CheckpointAbandoned: "abandoned_at",
        e.AttemptStopping: "stopping_at",
        e.AttemptEnded: "ended_at",
        e.AttemptReclassified: "reclassified_at",
        e.CheckpointCommitted: "committed_at",
        e.EvaluationRequested: "requested_at",
        e.EvaluationStarted: "started_at",
        e.EvaluationFailed: "failed_at",
        e.EvaluationCompleted: "completed_at",
        e.EvaluationExhausted: "exhausted_at",
    }
)


def time_of(fact: e.Fact | UnknownFact) -> datetime | None:
    """When the fact happened by its own account; None where it doesn't say."""
    field = _TIME_FIELDS.get(type(fact))
    return moment(getattr(fact, field)) if field else None


def summary_of(fact: e.Fact | UnknownFact) -> str:
    """One line for people."""
    if isinstance(fact, UnknownFact):
        return f"fact {fact.number} of a newer schema, which this build can't read"
    return _SUMMARIES[type(fact)](fact)


def _submitted(fact: e.RunSubmitted) -> str:
    spec = fact.spec
    ranks = count_text(spec.topology.world_size, "rank")
    return (
        f"submitted by {spec.owner or 'an unnamed owner'}: {spec.model_family}, {ranks} on {spec.compute.compute_class}"
    )


def _refused(fact: e.RunRefused) -> str:
    return f"refused: {one_line(fact.message, EXCERPT)}"


def _queued(fact: e.RunQueued) -> str:
    wait_s = (fact.not_before - fact.queued_at).total_seconds()
    backoff = f", not before {seconds_text(wait_s)} from then" if moment(fact.not_before) and wait_s > 0 else ""
    return f"queued for attempt {fact.attempt}{backoff}"


def _placed(fact: e.AttemptPlaced) -> str:
    waited = f" after {seconds_text(fact.queue_seconds)} in the queue"
    return f"attempt {fact.attempt} placed: {count_text(len(fact.ranks), 'rank')} on pool {fact.pool}{waited}"


def _attempt_refused(fact: e.AttemptRefused) -> str:
    return f"attempt {fact.attempt} refused: {fact.reason}: {one_line(fact.message, EXCERPT)}"


def _retry(fact: e.RetryDecided) -> str:
    budget = "no limit" if fact.budget < 0 else str(fact.budget)
    spent = f" ({fact.ledger} {fact.spent} of {budget})" if fact.ledger else ""
    return f"decided {fact.move}{spent}: {one_line(fact.why, EXCERPT)}"


def _resume(fact: e.ResumeTargetChosen) -> str:
    if fact.checkpoint is None:
        return "no committed checkpoint to resume from: starts at step 0"
    return f"resumes from the checkpoint of step {fact.checkpoint.step}"


def _environment(fact: e.EnvironmentObserved) -> str:
    differs = ", differs from the pinned one" if fact.differs_from_pinned else ""
    return f"rank {fact.rank} on {fact.host}: Python {fact.python_version}, torch {fact.torch_version or '-'}{differs}"


def _ended(fact: e.AttemptEnded) -> str:
    return f"attempt {fact.attempt} ended: {fact.reason}: {one_line(fact.cause, EXCERPT)}"


def _reclassified(fact: e.AttemptReclassified) -> str:
    return f"judged again by classifier {fact.classifier_version}: {fact.reason}: {one_line(fact.cause, EXCERPT)}"


def _capture(fact: e.CheckpointStarted) -> str:
    blocked = f"training blocked {seconds_text(fact.blocked_seconds)}"
    return f"checkpoint of step {fact.step} captured ({bytes_text(fact.size_bytes)}, {blocked})"


def _committed(fact: e.CheckpointCommitted) -> str:
    return f"checkpoint of step {fact.checkpoint.step} committed ({bytes_text(fact.size_bytes)})"


def _evaluation_failed(fact: e.EvaluationFailed) -> str:
    spent = f"{fact.spent} of {fact.budget}"
    return (
        f"evaluation try {fact.evaluation_attempt} failed: {fact.failure} ({spent}): {one_line(fact.message, EXCERPT)}"
    )


def _evaluation_completed(fact: e.EvaluationCompleted) -> str:
    metrics = [m for task in fact.tasks for m in task.metrics if m.primary and not m.slice]
    values = ", ".join(f"{m.name} {number_text(m.value)}" for m in metrics)
    return f"evaluation {fact.verdict}{': ' + values if values else ''} in {seconds_text(fact.seconds)}"


_SUMMARIES: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {
        e.OwnershipClaimed: lambda f: f"taken over by the writer at {f.endpoint or 'an unnamed address'}",
        e.CommandRefused: lambda f: f"{f.command} by {f.actor} refused: {one_line(f.message, EXCERPT)}",
        e.RunSubmitted: _submitted,
        e.RunRefused: _refused,
        e.RunQueued: _queued,
        e.AttemptPlaced: _placed,
        e.AttemptRefused: _attempt_refused,
        e.AttemptWrittenOff: lambda f: f"attempt {f.attempt} written off by the scheduler: {f.reason}",
        e.RetryDecided: _retry,
        e.FinalEvaluationOrdered: lambda f: f"final evaluation ordered: {f.pack.name} at step {f.checkpoint.step}",
        e.CancelRequested: lambda f: f"cancel asked for by {f.actor}{': ' + f.reason if f.reason else ''}",
        e.RunHeld: lambda f: f"held for a person: {f.reason}: {one_line(f.message, EXCERPT)}",
        e.RunReleased: lambda f: f"released by {f.actor}: {one_line(f.reason, EXCERPT)}",
        e.RunSucceeded: lambda f: "run SUCCEEDED",
        e.RunFailed: lambda f: f"run FAILED: {f.reason}: {one_line(f.message, EXCERPT)}",
        e.RunCancelled: lambda f: f"run CANCELLED{': ' + f.reason if f.reason else ''}",
        e.DatasetRegistered: lambda f: f"dataset {f.name} registered: {short_digest(f.manifest_digest)}",
        e.EvaluationPackRegistered: lambda f: f"evaluation pack {f.name} registered: {short_digest(f.digest)}",
        e.PoolObserved: lambda f: f"pool {f.pool}: {f.accelerators} accelerators, {f.cpus:g} CPUs at {f.agent_id}",
        e.AttemptStarting: lambda f: f"agent {f.agent_id} starts attempt {f.attempt}",
        e.ResumeTargetChosen: _resume,
        e.AttemptStarted: lambda f: f"{count_text(f.world_size, 'rank')} started",
        e.EnvironmentObserved: _environment,
        e.AttemptRunning: lambda f: f"first step: {f.first_step}",
        e.CheckpointStarted: _capture,
        e.CheckpointAbandoned: lambda f: f"checkpoint of step {f.step} abandoned: {one_line(f.why, EXCERPT)}",
        e.AttemptStopping: lambda f: f"stopping: {one_line(f.why, EXCERPT)}",
        e.AttemptEnded: _ended,
        e.AttemptReclassified: _reclassified,
        e.FenceRaised: lambda f: f"commit log fenced for epoch {f.epoch}",
        e.CheckpointCommitted: _committed,
        e.CheckpointHeld: lambda f: f"checkpoint of slot {f.commit_slot} held by {f.consumer}",
        e.HoldReleased: lambda f: f"checkpoint of slot {f.commit_slot} released by {f.consumer}",
        e.CheckpointSuperseded: lambda f: f"checkpoint of step {f.step} superseded ({f.by_policy})",
        e.CheckpointQuarantined: lambda f: f"checkpoint of slot {f.commit_slot} quarantined: {one_line(f.why, 120)}",
        e.CheckpointTombstoned: lambda f: f"checkpoint of slot {f.commit_slot} tombstoned",
        e.CheckpointDeleted: lambda f: f"checkpoint of slot {f.commit_slot} deleted, {bytes_text(f.freed_bytes)} freed",
        e.EvaluationRequested: lambda f: f"evaluation requested: {f.pack.name} at step {f.checkpoint.step}",
        e.EvaluationStarted: lambda f: f"evaluation try {f.evaluation_attempt} started on {f.host}",
        e.EvaluationFailed: _evaluation_failed,
        e.EvaluationCompleted: _evaluation_completed,
        e.EvaluationExhausted: lambda f: f"evaluation gave up: {f.failure}: {one_line(f.message, EXCERPT)}",
    }
)
