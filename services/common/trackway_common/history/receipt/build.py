"""Put an attempt's receipt together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trackway_common.attempt_shape import spec_of_attempt
from trackway_common.errors import NotFound
from trackway_common.history.model import AttemptHistory, RunHistory
from trackway_common.history.receipt.course_columns import (
    EvaluationColumns,
    LineageColumns,
    PlacementColumns,
    RetryColumns,
    accelerators_of,
    evaluation_columns,
    kept_captures,
    lineage_columns,
    placement_columns,
    retry_columns,
)
from trackway_common.history.receipt.outcome_columns import OutcomeColumns, ended_at, outcome_columns
from trackway_common.history.receipt.seconds import (
    SecondsColumns,
    Span,
    failed_at,
    split_seconds,
)
from trackway_common.history.receipt.spec_columns import SpecColumns, spec_columns
from trackway_common.history.wording import moment


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSeen:
    """What telemetry says about an attempt that is still running."""

    at: datetime
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeColumns:
    """Its marks, each by the fact that says it."""

    queued_at: datetime | None
    placed_at: datetime | None
    starting_at: datetime | None
    started_at: datetime | None
    """When its ranks started; of one that never came so far, when it was placed or refused."""
    first_step_at: datetime | None
    last_seen_at: datetime | None
    """Newest heartbeat of a rank."""
    ended_at: datetime | None
    queue_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MoneyColumns:
    """What it took."""

    accelerators: int
    gpu_seconds: float
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReceipt:
    """Every column of ``training_attempts``, in its order when flattened."""

    run_id: str
    attempt: int
    name: str
    outcome: OutcomeColumns
    time: TimeColumns
    seconds: SecondsColumns
    money: MoneyColumns
    placement: PlacementColumns
    lineage: LineageColumns
    evaluation: EvaluationColumns
    retry: RetryColumns
    spec: SpecColumns
    trace_id: str


def attempt_receipt(history: RunHistory, number: int, *, last_seen: LastSeen | None = None) -> AttemptReceipt:
    """Return the receipt of one attempt.

    Args:
        history: the run's; its submission must be among its facts.
        number: of the attempt.
        last_seen: from telemetry, for an attempt that still runs.
    Raises:
        NotFound: there is no such attempt, or the run's submission is missing.
    """
    attempt, spec = history.attempt(number), history.spec
    if attempt is None or spec is None:
        raise NotFound(f"run {history.run_id} has no attempt {number}")
    columns = spec_columns(spec_of_attempt(spec, attempt.placed))
    return AttemptReceipt(
        run_id=history.run_id,
        attempt=number,
        name=attempt_name(spec.project, history.run_id, number),
        outcome=outcome_columns(attempt),
        time=_time(attempt, last_seen),
        seconds=_seconds(history, attempt),
        money=_money(attempt, columns, last_seen),
        placement=placement_columns(attempt),
        lineage=lineage_columns(history, attempt, last_seen.step if last_seen else 0),
        evaluation=evaluation_columns(history, attempt),
        retry=retry_columns(attempt),
        spec=columns,
        trace_id=trace_id(history.traceparent),
    )


def attempt_name(project: str, run_id: str, number: int) -> str:
    """Resource name of an attempt."""
    return f"{run_name(project, run_id)}/attempts/{number}"


def run_name(project: str, run_id: str) -> str:
    """Resource name of a run."""
    return f"projects/{project}/runs/{run_id}"


def trace_id(traceparent: str) -> str:
    """Trace id of a W3C ``traceparent``; empty when there is none."""
    parts = traceparent.split("-")
    return parts[1] if len(parts) == 4 else ""


def _time(attempt: AttemptHistory, last_seen: LastSeen | None) -> TimeColumns:
    placed, starting, running = attempt.placed, attempt.starting, attempt.running
    return TimeColumns(
        queued_at=attempt.queued[0].queued_at if attempt.queued else None,
        placed_at=placed.placed_at if placed else None,
        starting_at=starting.starting_at if starting else None,
        started_at=_ranks_started_at(attempt) or (placed.placed_at if placed else ended_at(attempt)),
        first_step_at=running.first_step_at if running else None,
        last_seen_at=last_seen.at if last_seen else None,
        ended_at=ended_at(attempt),
        queue_seconds=placed.queue_seconds if placed else 0.0,
    )


def _ranks_started_at(attempt: AttemptHistory) -> datetime | None:
    if attempt.started:
        return attempt.started.started_at
    return moment(attempt.ended.started_at) if attempt.ended else None


def _seconds(history: RunHistory, attempt: AttemptHistory) -> SecondsColumns:
    end = ended_at(attempt)
    return seconds_until(history, attempt, end) if end else SecondsColumns()


def seconds_until(history: RunHistory, attempt: AttemptHistory, end: datetime) -> SecondsColumns:
    """Split the time that an attempt held its accelerators, up to its end or to a moment before it."""
    if attempt.placed is None:
        return SecondsColumns()
    ended = attempt.ended
    span = Span(
        placed_at=attempt.placed.placed_at,
        ranks_started_at=_ranks_started_at(attempt),
        first_step_at=attempt.running.first_step_at if attempt.running else None,
        failed_at=failed_at(ended.evidence) if ended else None,
        stopping_at=attempt.stopping.stopping_at if attempt.stopping else None,
        last_progress_at=moment(ended.last_progress_at) if ended else None,
        ended_at=end,
        reason=ended.reason if ended else None,
        phases=ended.phases if ended else None,
    )
    return split_seconds(span, attempt.captures, kept_captures(history, attempt))


def _money(attempt: AttemptHistory, spec: SpecColumns, last_seen: LastSeen | None) -> MoneyColumns:
    accelerators = accelerators_of(attempt.placed.ranks) if attempt.placed else 0
    if attempt.ended:
        accelerators, gpu_seconds = attempt.ended.accelerators, attempt.ended.gpu_seconds
    else:
        gpu_seconds = accelerators * _held_seconds(attempt, last_seen)
    return MoneyColumns(accelerators=accelerators, gpu_seconds=gpu_seconds, cost=gpu_seconds / 3600 * spec.shape.price)


def _held_seconds(attempt: AttemptHistory, last_seen: LastSeen | None) -> float:
    """Seconds that an attempt without an end of its own held its accelerators, as far as anyone knows."""
    begin = attempt.started.started_at if attempt.started else attempt.placed.placed_at if attempt.placed else None
    until = ended_at(attempt) or (last_seen.at if last_seen else None)
    return max(0.0, (until - begin).total_seconds()) if begin and until else 0.0
