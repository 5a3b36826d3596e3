"""What was decided afterwards, what is waited for, and how the run was evaluated."""

from __future__ import annotations

from datetime import datetime

from trackway_common.events import (
    EvaluationCompleted,
    NextMove,
    PoolObserved,
    Progress,
    RunPhase,
    RunSpec,
    TaskMetric,
)
from trackway_common.history.explain.sections import (
    Decision,
    EvaluationLine,
    Waiting,
)
from trackway_common.history.explain.subject import Subject, Surroundings
from trackway_common.history.model import EvaluationHistory, RunHistory
from trackway_common.history.wording import checkpoint_name, count_text, moment, number_text, seconds_text
from trackway_common.reasons import Counting, policy_of

AGENT_SILENT_S = 15.0
"""The scheduler probes an agent that was not heard for so long."""
NO_FLAVOR = "NoMatchingFlavor"
_COUNTING = {
    Counting.NO_PROGRESS: "without a newly committed checkpoint in between",
    Counting.LIFETIME: "over the run's life",
}


def decision_of(subject: Subject) -> Decision | None:
    """The scheduler's decision; None before there is one."""
    fact, after = subject.attempt.decision, subject.next
    if fact is None:
        return None
    return Decision(
        at=fact.decided_at,
        move=fact.move,
        why=fact.why,
        ledger=fact.ledger,
        spent=fact.spent,
        budget=fact.budget,
        counting=_COUNTING[policy_of(fact.reason).counting] if fact.ledger == fact.reason else "",
        backoff_seconds=fact.backoff_seconds,
        progress="" if fact.progress is Progress.UNSPECIFIED else fact.progress,
        next_attempt=subject.attempt.attempt + 1 if fact.move is NextMove.RETRY else None,
        changes=after.placed.changes if after and after.placed else fact.changes,
    )


def waiting_of(history: RunHistory, as_of: datetime, surroundings: Surroundings) -> Waiting | None:
    """Why the run does not run now; None when it runs or has ended."""
    since = history.phase_at
    if since is None or history.phase not in {RunPhase.SUBMITTED, RunPhase.QUEUED, RunPhase.HELD}:
        return None
    token, sentence, not_before = (
        _held(history) if history.phase is RunPhase.HELD else _queued(history, as_of, surroundings)
    )
    return Waiting(
        token=token,
        sentence=sentence,
        since=since,
        not_before=not_before,
        ahead=surroundings.ahead,
        holders=surroundings.holders,
    )


def evaluations_of(history: RunHistory) -> tuple[EvaluationLine, ...]:
    """Every evaluation of the run."""
    return tuple(_evaluation(evaluation) for evaluation in history.evaluations)


def evaluation_note(history: RunHistory) -> str:
    """Why there is no evaluation, when there is none."""
    spec = history.spec
    if history.evaluations or spec is None:
        return ""
    if not spec.evaluation_pack.digest:
        return "The run names no evaluation pack."
    if history.ended:
        return "None: a final evaluation follows only a training that finished."
    return f"None yet: pack {spec.evaluation_pack.name} judges the last checkpoint once training has finished."


def _held(history: RunHistory) -> tuple[str, str, datetime | None]:
    return "OnHold", f"{history.phase_reason}: {history.phase_message} A person has to release or cancel it.", None


def _queued(history: RunHistory, as_of: datetime, surroundings: Surroundings) -> tuple[str, str, datetime | None]:
    """The scheduler's own tokens, as far as what is at hand tells."""
    waiting = [attempt for attempt in history.attempts if attempt.queued and attempt.placed is None]
    not_before = moment(waiting[-1].queued[-1].not_before) if waiting else None
    if not_before and not_before > as_of:
        left = seconds_text((not_before - as_of).total_seconds())
        return "WaitingForBackoff", f"The backoff after the last attempt ends in {left}.", not_before
    spec, heard_at = history.spec, surroundings.agent_heard_at
    if spec and heard_at and (silent_s := (as_of - heard_at).total_seconds()) > AGENT_SILENT_S:
        silence = f"No agent of pool {spec.compute.pool} was heard for {seconds_text(silent_s)}."
        return "WaitingForAgent", silence, not_before
    if spec and surroundings.pool and (why := _no_flavor(spec, surroundings.pool)):
        return NO_FLAVOR, why, not_before
    pool = spec.compute.pool if spec else "its"
    if surroundings.ahead:
        return "WaitingForTurn", f"{count_text(surroundings.ahead, 'run')} of pool {pool} queued earlier.", not_before
    ranks = count_text(spec.topology.world_size, "rank") if spec else "its ranks"
    return "WaitingForQuota", f"Pool {pool} has no room for {ranks} at once yet.", not_before


def _no_flavor(spec: RunSpec, pool: PoolObserved) -> str:
    """Why the pool, as it last said of itself, can't hold the run at all; empty when it can."""
    offer = next((o for o in pool.offers if o.compute_class == spec.compute.compute_class), None)
    if offer is None:
        return f"Pool {pool.pool} does not offer {spec.compute.compute_class} at the moment."
    least = spec.topology.min_world_size or spec.topology.world_size
    if offer.max_ranks < least:
        ranks = count_text(offer.max_ranks, "rank")
        return f"Pool {pool.pool} has room for {ranks} of {offer.compute_class} when empty; the run needs {least}."
    return ""


def _evaluation(evaluation: EvaluationHistory) -> EvaluationLine:
    asked = evaluation.requested or evaluation.ordered
    done, given_up = evaluation.completed, evaluation.exhausted
    failed = [t for t in evaluation.tries if t.failed]
    return EvaluationLine(
        evaluation_id=evaluation.evaluation_id,
        pack=asked.pack.name if asked else "",
        checkpoint=checkpoint_name(asked.checkpoint) if asked else "",
        state=done.verdict if done else evaluation.phase,
        evaluator_version=done.evaluator_version if done else "",
        tries=len(evaluation.tries),
        results=_results(done) if done else (),
        gates=_gates(done) if done else (),
        failures=tuple(
            [f"try {t.number}: {t.failed.failure}: {t.failed.message}" for t in failed if t.failed]
            + ([f"gave up: {given_up.failure}: {given_up.message}"] if given_up else [])
        ),
    )


def _results(done: EvaluationCompleted) -> tuple[str, ...]:
    return tuple(
        f"{task.task} {_metric_text(metric)} over {task.scored} of {count_text(task.planned, 'sample')}"
        for task in done.tasks
        for metric in task.metrics
        if not metric.slice
    )


def _metric_text(metric: TaskMetric) -> str:
    error = f" ± {number_text(metric.stderr)}" if metric.stderr is not None else ""
    return f"{metric.name} {number_text(metric.value)}{error}"


def _gates(done: EvaluationCompleted) -> tuple[str, ...]:
    return tuple(
        f"gate {g.task} {g.metric} {g.op} {number_text(g.threshold)}: {number_text(g.value)} {g.verdict}"
        f"{' (blocking)' if g.blocking else ''}"
        for g in done.gates
    )
