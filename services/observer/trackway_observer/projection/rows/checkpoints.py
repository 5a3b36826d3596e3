"""Rows of the checkpoints topic: commits, and what later slots say about them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from trackway_common import events as e
from trackway_common.codec import fact_json, fact_name
from trackway_common.history.wording import checkpoint_name

from trackway_observer.projection.rows.row import Row, Spot


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRow:
    TABLE: ClassVar[str] = "checkpoint_commits_state"
    run_id: str
    slot: int
    version: int
    checkpoint: str
    step: int
    epoch: int
    nonce: str
    manifest_digest: str
    parent: str
    parent_run_id: str
    parent_digest: str
    path: str
    size_bytes: int
    world_size: int
    samples_consumed: int
    config_digest: str
    dataset_digests: tuple[str, ...]
    metrics: str
    committed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRow:
    """One later fact about a commit; of a hold and its release, the newest of each consumer."""

    TABLE: ClassVar[str] = "checkpoint_slots_state"
    run_id: str
    commit_slot: int
    fact: str
    consumer: str
    version: int
    text: str
    amount: int
    """Seconds that a hold lasts, bytes that a deletion freed."""
    at: datetime


def checkpoint_rows(fact: e.Fact, spot: Spot) -> Iterator[Row]:
    """Rows of one slot of a run's commit log; fences have only their event."""
    match fact:
        case e.CheckpointCommitted():
            yield _commit(fact, spot)
        case e.CheckpointHeld():
            yield _slot(fact, fact.commit_slot, spot, consumer=fact.consumer, text=fact.reason, amount=fact.ttl_seconds)
        case e.HoldReleased():
            yield _slot(fact, fact.commit_slot, spot, consumer=fact.consumer)
        case e.CheckpointSuperseded():
            yield _slot(fact, fact.commit_slot, spot, text=fact.by_policy)
        case e.CheckpointQuarantined():
            yield _slot(fact, fact.commit_slot, spot, text=fact.why)
        case e.CheckpointTombstoned():
            yield _slot(fact, fact.commit_slot, spot)
        case e.CheckpointDeleted():
            yield _slot(fact, fact.commit_slot, spot, amount=fact.freed_bytes)


def _slot(
    fact: e.Fact, commit_slot: int, spot: Spot, *, consumer: str = "", text: str = "", amount: int = 0
) -> SlotRow:
    return SlotRow(
        run_id=spot.root,
        commit_slot=commit_slot,
        fact=fact_name(fact),
        consumer=consumer,
        version=spot.sequence,
        text=text,
        amount=amount,
        at=spot.occurred_at,
    )


def _commit(fact: e.CheckpointCommitted, spot: Spot) -> CommitRow:
    ref, parent = fact.checkpoint, fact.parent
    return CommitRow(
        run_id=spot.root,
        slot=ref.slot,
        version=spot.sequence,
        checkpoint=checkpoint_name(ref),
        step=ref.step,
        epoch=ref.epoch,
        nonce=ref.nonce,
        manifest_digest=ref.manifest_digest,
        parent=checkpoint_name(parent) if parent else "",
        parent_run_id=parent.run_id if parent else "",
        parent_digest=parent.manifest_digest if parent else "",
        path=fact.path,
        size_bytes=fact.size_bytes,
        world_size=fact.world_size,
        samples_consumed=fact.samples_consumed,
        config_digest=fact.config_digest,
        dataset_digests=fact.dataset_digests,
        metrics=fact_json(fact.metrics),
        committed_at=fact.committed_at,
    )
