"""Rows of the attempts topic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar

from trackway_common import events as e
from trackway_common.codec import fact_json, fact_name
from trackway_common.history.parts import attempt_number
from trackway_common.history.receipt.course_columns import capture_name
from trackway_common.history.receipt.seconds import failed_at
from trackway_common.history.summaries import time_of
from trackway_common.history.wording import checkpoint_name, moment

from trackway_observer.projection.rows.row import Row, Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRow:
    """A step of an attempt's life that happens once: starting, resuming, started, running, stopping."""

    TABLE: ClassVar[str] = "attempt_marks_state"
    run_id: str
    attempt: int
    fact: str
    version: int
    at: datetime
    checkpoint: str = ""
    checkpoint_step: int | None = None
    checkpoint_digest: str = ""
    cluster_id: str = ""
    nodes: tuple[str, ...] = ()
    ranks: str = ""
    first_step: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockColumns:
    """What a session measured; nothing where ``phases_at`` is absent."""

    restore_seconds: float = 0.0
    data_wait_seconds: float = 0.0
    stall_seconds: float = 0.0
    step_seconds: float = 0.0
    phases_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRow:
    TABLE: ClassVar[str] = "attempt_ends_state"
    run_id: str
    attempt: int
    version: int
    reason: str
    domain: str
    confidence: float
    cause: str
    fingerprint: str
    classifier_version: str
    blamed_rank: int | None
    blamed_node: str
    evidence: str
    failed_at: datetime | None
    rank_ends: str
    accelerators: int
    gpu_seconds: float
    started_at: datetime | None
    ended_at: datetime
    first_step: int
    last_step: int
    resumed_from: str
    resumed_from_step: int | None
    resumed_from_digest: str
    last_committed: str
    last_committed_step: int | None
    last_committed_digest: str
    last_metrics: str
    clocks: ClockColumns
    last_progress_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRow:
    TABLE: ClassVar[str] = "attempt_environments_state"
    run_id: str
    attempt: int
    rank: int
    version: int
    python_version: str
    torch_version: str
    device: str
    host: str
    environment_digest: str
    differs_from_pinned: bool
    report_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRow:
    TABLE: ClassVar[str] = "checkpoint_captures_state"
    run_id: str
    step: int
    epoch: int
    nonce: str
    version: int
    attempt: int
    checkpoint: str
    size_bytes: int
    blocked_seconds: float
    started_at: datetime
    clocks: ClockColumns


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonRow:
    TABLE: ClassVar[str] = "checkpoint_abandons_state"
    run_id: str
    step: int
    epoch: int
    nonce: str
    version: int
    attempt: int
    checkpoint: str
    why: str
    abandoned_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    TABLE: ClassVar[str] = "attempt_verdicts_state"
    run_id: str
    attempt: int
    version: int
    reason: str
    domain: str
    confidence: float
    cause: str
    fingerprint: str
    classifier_version: str
    blamed_rank: int | None
    blamed_node: str
    evidence: str
    failed_at: datetime | None
    actor: str
    reclassified_at: datetime


def attempt_rows(fact: e.Fact, spot: Spot) -> Iterator[Row]:
    """Rows of one fact of the attempts topic."""
    attempt = attempt_number(spot.stream) or 0
    match fact:
        case e.EnvironmentObserved():
            yield _environment(fact, attempt, spot)
        case e.CheckpointStarted():
            yield _capture(fact, attempt, spot)
        case e.CheckpointAbandoned():
            yield _abandon(fact, attempt, spot)
        case e.AttemptEnded():
            yield _end(fact, attempt, spot)
        case e.AttemptReclassified():
            yield _verdict(fact, attempt, spot)
        case _:
            yield from _mark(fact, attempt, spot)


def _mark(fact: e.Fact, attempt: int, spot: Spot) -> Iterator[MarkRow]:
    row = MarkRow(
        run_id=spot.root,
        attempt=attempt,
        fact=fact_name(fact),
        version=spot.sequence,
        at=time_of(fact) or spot.occurred_at,
    )
    match fact:
        case e.AttemptStarting():
            yield row
        case e.ResumeTargetChosen():
            yield _resume(row, fact.checkpoint)
        case e.AttemptStarted():
            nodes = tuple(sorted({rank.node for rank in fact.ranks}))
            yield replace(row, cluster_id=fact.cluster_id, nodes=nodes, ranks=fact_json(fact.ranks))
        case e.AttemptRunning():
            yield replace(row, first_step=fact.first_step)
        case e.AttemptStopping():
            yield replace(row, why=fact.why)


def _resume(row: MarkRow, ref: e.CheckpointRef | None) -> MarkRow:
    if ref is None:
        return row
    return replace(
        row, checkpoint=checkpoint_name(ref), checkpoint_step=ref.step, checkpoint_digest=ref.manifest_digest
    )


def _environment(fact: e.EnvironmentObserved, attempt: int, spot: Spot) -> EnvironmentRow:
    return EnvironmentRow(
        run_id=spot.root,
        attempt=attempt,
        rank=fact.rank,
        version=spot.sequence,
        python_version=fact.python_version,
        torch_version=fact.torch_version,
        device=fact.device,
        host=fact.host,
        environment_digest=fact.environment_digest,
        differs_from_pinned=fact.differs_from_pinned,
        report_digest=fact.report_digest,
    )


def _capture(fact: e.CheckpointStarted, attempt: int, spot: Spot) -> CaptureRow:
    return CaptureRow(
        run_id=spot.root,
        step=fact.step,
        epoch=fact.epoch,
        nonce=fact.nonce,
        version=spot.sequence,
        attempt=attempt,
        checkpoint=capture_name(fact),
        size_bytes=fact.size_bytes,
        blocked_seconds=fact.blocked_seconds,
        started_at=fact.started_at,
        clocks=_clocks(fact.phases),
    )


def _clocks(phases: e.PhaseSeconds | None) -> ClockColumns:
    if phases is None:
        return ClockColumns()
    return ClockColumns(
        restore_seconds=phases.restore_seconds,
        data_wait_seconds=phases.data_wait_seconds,
        stall_seconds=phases.checkpoint_stall_seconds,
        step_seconds=phases.step_seconds,
        phases_at=phases.measured_at,
    )


def _abandon(fact: e.CheckpointAbandoned, attempt: int, spot: Spot) -> AbandonRow:
    return AbandonRow(
        run_id=spot.root,
        step=fact.step,
        epoch=fact.epoch,
        nonce=fact.nonce,
        version=spot.sequence,
        attempt=attempt,
        checkpoint=capture_name(fact),
        why=fact.why,
        abandoned_at=fact.abandoned_at,
    )


def _verdict(fact: e.AttemptReclassified, attempt: int, spot: Spot) -> VerdictRow:
    return VerdictRow(
        run_id=spot.root,
        attempt=attempt,
        version=spot.sequence,
        reason=fact.reason,
        domain=fact.domain,
        confidence=fact.confidence,
        cause=fact.cause,
        fingerprint=fact.fingerprint,
        classifier_version=fact.classifier_version,
        blamed_rank=fact.blamed_rank,
        blamed_node=fact.blamed_node or "",
        evidence=fact_json(fact.evidence),
        failed_at=failed_at(fact.evidence),
        actor=fact.actor,
        reclassified_at=fact.reclassified_at,
    )


def _end(fact: e.AttemptEnded, attempt: int, spot: Spot) -> EndRow:
    resumed, last = fact.resumed_from, fact.last_committed
    return EndRow(
        run_id=spot.root,
        attempt=attempt,
        version=spot.sequence,
        reason=fact.reason,
        domain=fact.domain,
        confidence=fact.confidence,
        cause=fact.cause,
        fingerprint=fact.fingerprint,
        classifier_version=fact.classifier_version,
        blamed_rank=fact.blamed_rank,
        blamed_node=fact.blamed_node or "",
        evidence=fact_json(fact.evidence),
        failed_at=failed_at(fact.evidence),
        rank_ends=fact_json(fact.ranks),
        accelerators=fact.accelerators,
        gpu_seconds=fact.gpu_seconds,
        started_at=moment(fact.started_at),
        ended_at=fact.ended_at,
        first_step=fact.first_step,
        last_step=fact.last_step,
        resumed_from=checkpoint_name(resumed) if resumed else "",
        resumed_from_step=resumed.step if resumed else None,
        resumed_from_digest=resumed.manifest_digest if resumed else "",
        last_committed=checkpoint_name(last) if last else "",
        last_committed_step=last.step if last else None,
        last_committed_digest=last.manifest_digest if last else "",
        last_metrics=fact_json(fact.last_metrics),
        clocks=_clocks(fact.phases),
        last_progress_at=moment(fact.last_progress_at),
    )
