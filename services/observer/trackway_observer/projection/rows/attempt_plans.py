"""Rows of the runs topic: what the scheduler plans and rules for attempts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from trackway_common import events as e
from trackway_common.codec import fact_json
from trackway_common.history.receipt.course_columns import accelerators_of
from trackway_common.history.receipt.outcome_columns import Ruling, ruling, write_off_message
from trackway_common.history.receipt.seconds import failed_at
from trackway_common.history.wording import checkpoint_name

from trackway_observer.projection.rows.row import Row, Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRow:
    TABLE: ClassVar[str] = "attempt_queue_state"
    run_id: str
    attempt: int
    version: int
    queued_at: datetime
    not_before: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeColumns:
    """What the attempt ran with; nothing where it was exactly the spec's."""

    is_shaped: bool = False
    shaped_config_digest: str = ""
    shaped_config_json: str = ""
    shaped_compute_class: str = ""
    shaped_accelerator_kind: str = ""
    shaped_preemptible: bool = False
    shaped_price: float = 0.0
    shaped_currency: str = ""
    shaped_price_since: str = ""
    shaped_world_size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRow:
    TABLE: ClassVar[str] = "attempt_placements_state"
    run_id: str
    attempt: int
    version: int
    epoch: int
    pool: str
    agent_id: str
    placement: str
    changes: str
    placed_at: datetime
    queue_seconds: float
    accelerators: int
    shape: ShapeColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class RulingRow:
    """The scheduler's own word on an attempt: refused or written off."""

    TABLE: ClassVar[str] = "attempt_rulings_state"
    run_id: str
    attempt: int
    version: int
    kind: str
    reason: str
    domain: str
    message: str
    evidence: str
    failed_at: datetime | None
    ruled_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecisionRow:
    TABLE: ClassVar[str] = "retry_decisions_state"
    run_id: str
    attempt: int
    version: int
    reason: str
    move: str
    ledger: str
    spent: int
    budget: int
    backoff_seconds: float
    not_before: datetime
    why: str
    changes: str
    progress: str
    last_committed: str
    decided_at: datetime


def plan_rows(fact: e.Fact, spot: Spot) -> Iterator[Row]:
    """Rows of what the scheduler says about an attempt."""
    match fact:
        case e.RunQueued():
            yield QueueRow(
                run_id=spot.root,
                attempt=fact.attempt,
                version=spot.sequence,
                queued_at=fact.queued_at,
                not_before=fact.not_before,
            )
        case e.AttemptPlaced():
            yield _placement(fact, spot)
        case e.AttemptRefused():
            said = ruling(fact.reason, fact.message, fact.evidence, fact.refused_at)
            yield _ruling(fact.attempt, "REFUSED", said, spot)
        case e.AttemptWrittenOff():
            said = ruling(fact.reason, write_off_message(fact.evidence), fact.evidence, fact.written_off_at)
            yield _ruling(fact.attempt, "WRITTEN_OFF", said, spot)
        case e.RetryDecided():
            yield _decision(fact, spot)


def _placement(fact: e.AttemptPlaced, spot: Spot) -> PlacementRow:
    return PlacementRow(
        run_id=spot.root,
        attempt=fact.attempt,
        version=spot.sequence,
        epoch=fact.epoch,
        pool=fact.pool,
        agent_id=fact.agent_id,
        placement=fact_json(fact.ranks),
        changes=fact_json(fact.changes),
        placed_at=fact.placed_at,
        queue_seconds=fact.queue_seconds,
        accelerators=accelerators_of(fact.ranks),
        shape=_shape(fact.shape),
    )


def _shape(shape: e.AttemptShape | None) -> ShapeColumns:
    if shape is None:
        return ShapeColumns()
    compute = shape.compute
    return ShapeColumns(
        is_shaped=True,
        shaped_config_digest=shape.config_digest,
        shaped_config_json=shape.hyperparameters_json,
        shaped_compute_class=compute.compute_class,
        shaped_accelerator_kind=compute.accelerator_kind,
        shaped_preemptible=compute.preemptible,
        shaped_price=compute.price.amount,
        shaped_currency=compute.price.currency,
        shaped_price_since=compute.price.since,
        shaped_world_size=shape.world_size,
    )


def _ruling(attempt: int, kind: str, said: Ruling, spot: Spot) -> RulingRow:
    return RulingRow(
        run_id=spot.root,
        attempt=attempt,
        version=spot.sequence,
        kind=kind,
        reason=said.reason,
        domain=said.domain,
        message=said.message,
        evidence=fact_json(said.evidence),
        failed_at=failed_at(said.evidence),
        ruled_at=said.at,
    )


def _decision(fact: e.RetryDecided, spot: Spot) -> RetryDecisionRow:
    return RetryDecisionRow(
        run_id=spot.root,
        attempt=fact.attempt,
        version=spot.sequence,
        reason=fact.reason,
        move=fact.move,
        ledger=fact.ledger,
        spent=fact.spent,
        budget=fact.budget,
        backoff_seconds=fact.backoff_seconds,
        not_before=fact.not_before,
        why=fact.why,
        changes=fact_json(fact.changes),
        progress=fact.progress,
        last_committed=checkpoint_name(fact.last_committed) if fact.last_committed else "",
        decided_at=fact.decided_at,
    )
