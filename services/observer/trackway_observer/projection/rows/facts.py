"""Rows of any commit of a fact topic: its events, what was refused, who claimed what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import ClassVar

from trackway_common import topics
from trackway_common.acceptance import Accepted, Claimed, Duplicate, Rejected
from trackway_common.codec import encode_fact, fact_json, fact_name
from trackway_common.commit import Commit, UnknownFact
from trackway_common.events import Fact, OwnershipClaimed
from trackway_common.fact_reader import Judged
from trackway_common.history.fold import run_of
from trackway_common.history.receipt.build import trace_id

from trackway_observer.projection.rows.attempts import attempt_rows
from trackway_observer.projection.rows.checkpoints import checkpoint_rows
from trackway_observer.projection.rows.evaluations import evaluation_rows
from trackway_observer.projection.rows.row import Position, Row, Spot
from trackway_observer.projection.rows.runs import run_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One accepted fact, whole."""

    TABLE: ClassVar[str] = "events_state"
    run_id: str
    topic: str
    kafka_partition: int
    kafka_offset: int
    event_index: int
    stream: str
    sequence: int
    fact: str
    commit_id: str
    epoch: int
    claim: int
    writer_id: str
    command_id: str
    causation_id: str
    correlation_id: str
    tenant: str
    actor: str
    trace_id: str
    traceparent: str
    occurred_at: datetime
    appended_at: datetime
    payload: bytes
    """The event as it stands in its commit (protobuf)."""
    fields: str
    """The same as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRow:
    """One fact that a reader refused, and why: evidence, never applied."""

    TABLE: ClassVar[str] = "rejected_events_state"
    topic: str
    kafka_partition: int
    kafka_offset: int
    event_index: int
    run_id: str
    stream: str
    sequence: int
    fact: str
    reason: str
    commit_id: str
    epoch: int
    claim: int
    writer_id: str
    command_id: str
    actor: str
    occurred_at: datetime
    appended_at: datetime
    fields: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRow:
    """A writer that took a scope over."""

    TABLE: ClassVar[str] = "ownership_claims_state"
    topic: str
    kafka_partition: int
    kafka_offset: int
    scope: str
    epoch: int
    claim: int
    writer_id: str
    endpoint: str
    occurred_at: datetime
    appended_at: datetime


_STATE_ROWS: Mapping[str, Callable[[Fact, Spot], Iterator[Row]]] = MappingProxyType(
    {
        topics.RUNS: run_rows,
        topics.ATTEMPTS: attempt_rows,
        topics.CHECKPOINTS: checkpoint_rows,
        topics.EVALUATIONS: evaluation_rows,
    }
)


def rows_of(judged: Judged) -> Iterator[Row]:
    """Every row that a judged commit makes; none for a duplicate."""
    record = judged.record
    at = Position(topic=record.topic, partition=record.partition, offset=record.offset, appended_at=record.appended_at)
    match judged.verdict:
        case Accepted():
            yield from _accepted(judged.commit, at)
        case Claimed(scope):
            yield from _claims(judged.commit, scope, at)
        case Rejected(reason):
            yield from _rejected(judged.commit, reason, at)
        case Duplicate():
            return


def _accepted(commit: Commit, at: Position) -> Iterator[Row]:
    state_rows = _STATE_ROWS[at.topic]
    for index, fact in enumerate(commit.facts):
        yield _event(commit, fact, index, at)
        if not isinstance(fact, UnknownFact):
            yield from state_rows(fact, _spot(commit, index))


def _spot(commit: Commit, index: int) -> Spot:
    return Spot(
        stream=commit.stream,
        sequence=commit.first_seq + index,
        occurred_at=commit.occurred_at,
        actor=commit.actor,
        traceparent=commit.traceparent,
    )


def _event(commit: Commit, fact: Fact | UnknownFact, index: int, at: Position) -> EventRow:
    return EventRow(
        run_id=run_of(commit) or "",
        topic=at.topic,
        kafka_partition=at.partition,
        kafka_offset=at.offset,
        event_index=index,
        stream=commit.stream,
        sequence=commit.first_seq + index,
        fact=fact_name(fact),
        commit_id=commit.commit_id,
        epoch=commit.term.epoch,
        claim=commit.term.claim,
        writer_id=commit.writer_id,
        command_id=commit.command_id,
        causation_id=commit.causation_id,
        correlation_id=commit.correlation_id,
        tenant=commit.tenant,
        actor=commit.actor,
        trace_id=trace_id(commit.traceparent),
        traceparent=commit.traceparent,
        occurred_at=commit.occurred_at,
        appended_at=at.appended_at,
        payload=encode_fact(fact),
        fields=fact_json(fact),
    )


def _rejected(commit: Commit, reason: str, at: Position) -> Iterator[RejectedRow]:
    for index, fact in enumerate(commit.facts):
        yield RejectedRow(
            topic=at.topic,
            kafka_partition=at.partition,
            kafka_offset=at.offset,
            event_index=index,
            run_id=run_of(commit) or "",
            stream=commit.stream,
            sequence=commit.first_seq + index,
            fact=fact_name(fact),
            reason=reason,
            commit_id=commit.commit_id,
            epoch=commit.term.epoch,
            claim=commit.term.claim,
            writer_id=commit.writer_id,
            command_id=commit.command_id,
            actor=commit.actor,
            occurred_at=commit.occurred_at,
            appended_at=at.appended_at,
            fields=fact_json(fact),
        )


def _claims(commit: Commit, scope: str, at: Position) -> Iterator[ClaimRow]:
    for fact in commit.facts:
        if isinstance(fact, OwnershipClaimed):
            yield ClaimRow(
                topic=at.topic,
                kafka_partition=at.partition,
                kafka_offset=at.offset,
                scope=scope,
                epoch=commit.term.epoch,
                claim=commit.term.claim,
                writer_id=commit.writer_id,
                endpoint=fact.endpoint,
                occurred_at=commit.occurred_at,
                appended_at=at.appended_at,
            )
