"""Rows of the runs topic: the run itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from trackway_common import events as e
from trackway_common.codec import fact_json
from trackway_common.history.fold_runs import phase_after
from trackway_common.history.receipt.build import trace_id
from trackway_common.history.receipt.spec_columns import SpecColumns, spec_columns
from trackway_common.history.wording import checkpoint_name

from trackway_observer.projection.rows.attempt_plans import plan_rows
from trackway_observer.projection.rows.row import Row, Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpecRow:
    TABLE: ClassVar[str] = "run_specs_state"
    run_id: str
    version: int
    submitted_at: datetime
    request_digest: str
    actor: str
    trace_id: str
    spec: SpecColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRefusalRow:
    TABLE: ClassVar[str] = "run_refusals_state"
    run_id: str
    version: int
    refused_at: datetime
    message: str
    violations: str
    project: str
    model_family: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPhaseRow:
    TABLE: ClassVar[str] = "run_phases_state"
    run_id: str
    version: int
    phase: str
    since: datetime
    reason: str
    message: str
    evaluation_id: str
    result: str
    result_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelRow:
    TABLE: ClassVar[str] = "run_cancels_state"
    run_id: str
    version: int
    requested_at: datetime
    cancelled_by: str
    cancel_reason: str


def run_rows(fact: e.Fact, spot: Spot) -> Iterator[Row]:
    """Rows of one fact of the runs topic; facts about datasets, packs and pools have only their event."""
    if not spot.stream.startswith("runs/"):
        return
    yield from _phase(fact, spot)
    match fact:
        case e.RunSubmitted():
            yield _spec(fact, spot)
        case e.RunRefused():
            yield _refusal(fact, spot)
        case e.CancelRequested():
            yield RunCancelRow(
                run_id=spot.root,
                version=spot.sequence,
                requested_at=fact.requested_at,
                cancelled_by=fact.actor,
                cancel_reason=fact.reason,
            )
        case _:
            yield from plan_rows(fact, spot)


def _phase(fact: e.Fact, spot: Spot) -> Iterator[Row]:
    entered = phase_after(fact)
    if entered is None:
        return
    phase, since, reason, message = entered
    result = fact.result if isinstance(fact, e.RunSucceeded) else None
    yield RunPhaseRow(
        run_id=spot.root,
        version=spot.sequence,
        phase=phase,
        since=since,
        reason=reason,
        message=message,
        evaluation_id=fact.evaluation_id if isinstance(fact, e.FinalEvaluationOrdered) else "",
        result=checkpoint_name(result) if result else "",
        result_digest=result.manifest_digest if result else "",
    )


def _spec(fact: e.RunSubmitted, spot: Spot) -> RunSpecRow:
    return RunSpecRow(
        run_id=spot.root,
        version=spot.sequence,
        submitted_at=fact.submitted_at,
        request_digest=fact.request_digest,
        actor=spot.actor,
        trace_id=trace_id(spot.traceparent),
        spec=spec_columns(fact.spec),
    )


def _refusal(fact: e.RunRefused, spot: Spot) -> RunRefusalRow:
    return RunRefusalRow(
        run_id=spot.root,
        version=spot.sequence,
        refused_at=fact.refused_at,
        message=fact.message,
        violations=fact_json(fact.violations),
        project=fact.project,
        model_family=fact.model_family,
        owner=fact.owner,
    )
