"""From an entry of a commit log to the commit that mirrors it on the log. Pure: any checkpointer makes the same."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import assert_never

from trackway_common.checkpoint.entries import Commit as Marker
from trackway_common.checkpoint.entries import (
    Deleted,
    Fence,
    Hold,
    LogEntry,
    Quarantine,
    Release,
    Supersede,
    Tombstone,
)
from trackway_common.commit import Commit, Term
from trackway_common.events import (
    CheckpointCommitted,
    CheckpointDeleted,
    CheckpointHeld,
    CheckpointQuarantined,
    CheckpointRef,
    CheckpointSuperseded,
    CheckpointTombstoned,
    Fact,
    FenceRaised,
    HoldReleased,
)
from trackway_common.ids import checkpoint_stream

NOBODY = Term(0, 0)
"""Checkpoint streams have no owner: slots are unique in the commit log already."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def commit_of(run_id: str, entry: LogEntry, *, superseded: Marker | None, traceparent: str) -> Commit:
    """The commit of the stream ``checkpoints/{run}`` that says what the entry says.

    Args:
        superseded: the marker that a ``supersede`` entry is about; None for other entries.
    """
    return Commit(
        commit_id=commit_id(run_id, entry.slot),
        stream=checkpoint_stream(run_id),
        first_seq=entry.slot,
        term=NOBODY,
        writer_id=entry.writer,
        command_id="",
        causation_id="",
        correlation_id=run_id,
        tenant="default",
        actor=entry.writer,
        occurred_at=_at(entry.at_ms),
        traceparent=traceparent,
        facts=(fact_of(run_id, entry, superseded),),
    )


def commit_id(run_id: str, slot: int) -> str:
    """The same for whoever publishes the slot, however often."""
    return hashlib.sha256(f"checkpoints/{run_id}/{slot}".encode()).hexdigest()[:32]


def fact_of(run_id: str, entry: LogEntry, superseded: Marker | None) -> Fact:
    """What happened, in the words of the log."""
    match entry.body:
        case Fence(epoch=epoch):
            return FenceRaised(epoch=epoch)
        case Marker() as marker:
            return _committed(run_id, entry, marker)
        case Hold(commit_slot=slot, consumer=consumer, reason=reason, ttl_seconds=ttl_seconds):
            return CheckpointHeld(commit_slot=slot, consumer=consumer, reason=reason, ttl_seconds=ttl_seconds)
        case Release(commit_slot=slot, consumer=consumer):
            return HoldReleased(commit_slot=slot, consumer=consumer)
        case Supersede(commit_slot=slot, by_policy=by_policy):
            return CheckpointSuperseded(
                commit_slot=slot, step=superseded.step if superseded else 0, by_policy=by_policy
            )
        case Quarantine(commit_slot=slot, why=why):
            return CheckpointQuarantined(commit_slot=slot, why=why)
        case Tombstone(commit_slot=slot):
            return CheckpointTombstoned(commit_slot=slot)
        case Deleted(commit_slot=slot, freed_bytes=freed_bytes):
            return CheckpointDeleted(commit_slot=slot, freed_bytes=freed_bytes)
        case _:
            assert_never(entry.body)


def reference(run_id: str, slot: int, marker: Marker) -> CheckpointRef:
    """The checkpoint that a marker committed."""
    return CheckpointRef(
        run_id=run_id,
        step=marker.step,
        epoch=marker.epoch,
        nonce=marker.nonce,
        manifest_digest=marker.manifest_digest,
        slot=slot,
    )


def _committed(run_id: str, entry: LogEntry, marker: Marker) -> CheckpointCommitted:
    return CheckpointCommitted(
        checkpoint=reference(run_id, entry.slot, marker),
        parent=marker.parent,
        path=marker.path,
        size_bytes=marker.size_bytes,
        world_size=marker.world_size,
        samples_consumed=marker.samples_consumed,
        config_digest=marker.config_digest,
        dataset_digests=marker.dataset_digests,
        committed_at=_at(entry.at_ms),
        metrics=marker.metrics,
    )


def _at(at_ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=at_ms)
