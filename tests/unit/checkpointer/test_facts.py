"""Entries as facts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from trackway_checkpointer.domain.facts import commit_id, commit_of
from trackway_common.checkpoint.entries import (
    Commit,
    Deleted,
    Fence,
    Head,
    Hold,
    LogEntry,
    Quarantine,
    Release,
    Supersede,
    Tombstone,
)
from trackway_common.codec import decode_commit, encode_commit
from trackway_common.events import (
    CheckpointCommitted,
    CheckpointDeleted,
    CheckpointHeld,
    CheckpointQuarantined,
    CheckpointRef,
    CheckpointSuperseded,
    CheckpointTombstoned,
    FenceRaised,
    HoldReleased,
    MetricValue,
)

PARENT = CheckpointRef(run_id="run-1", step=10, epoch=1, nonce="aaaa", manifest_digest="sha256:p", slot=2)
MARKER = Commit(
    epoch=4,
    nonce="abcd",
    step=1200,
    path="data/s000001200-e0004-abcd",
    manifest_digest="sha256:m",
    parent=PARENT,
    size_bytes=5,
    world_size=2,
    samples_consumed=64,
    config_digest="sha256:c",
    dataset_digests=("sha256:d",),
    metrics=(MetricValue(name="loss", value=0.5),),
)
COMMITTED = CheckpointCommitted(
    checkpoint=CheckpointRef(run_id="run-1", step=1200, epoch=4, nonce="abcd", manifest_digest="sha256:m", slot=7),
    parent=PARENT,
    path="data/s000001200-e0004-abcd",
    size_bytes=5,
    world_size=2,
    samples_consumed=64,
    config_digest="sha256:c",
    dataset_digests=("sha256:d",),
    committed_at=datetime(2026, 11, 21, 12, 0, 0, 250_000, tzinfo=UTC),
    metrics=(MetricValue(name="loss", value=0.5),),
)
AT_MS = int(COMMITTED.committed_at.timestamp() * 1000)


def entry_of(body) -> LogEntry:
    return LogEntry(slot=7, at_ms=AT_MS, writer="checkpointer/a", token="t", body=body, head=Head())


@pytest.mark.parametrize(
    ("body", "fact"),
    [
        (Fence(epoch=4), FenceRaised(epoch=4)),
        (MARKER, COMMITTED),
        (
            Hold(commit_slot=3, consumer="evaluator", reason="r", ttl_seconds=5),
            CheckpointHeld(commit_slot=3, consumer="evaluator", reason="r", ttl_seconds=5),
        ),
        (Release(commit_slot=3, consumer="evaluator"), HoldReleased(commit_slot=3, consumer="evaluator")),
        (Quarantine(commit_slot=3, why="w"), CheckpointQuarantined(commit_slot=3, why="w")),
        (Tombstone(commit_slot=3), CheckpointTombstoned(commit_slot=3)),
        (Deleted(commit_slot=3, freed_bytes=9), CheckpointDeleted(commit_slot=3, freed_bytes=9)),
    ],
)
def test_every_kind_of_entry_is_a_fact(body, fact):
    commit = commit_of("run-1", entry_of(body), superseded=None, traceparent="")
    assert commit.facts == (fact,)
    assert (commit.stream, commit.first_seq, commit.last_seq) == ("checkpoints/run-1", 7, 7)
    assert decode_commit(encode_commit(commit)) == commit


def test_a_superseded_checkpoint_is_named_by_its_step():
    entry = entry_of(Supersede(commit_slot=3, by_policy="keep_last=2"))
    commit = commit_of("run-1", entry, superseded=MARKER, traceparent="")
    assert commit.facts == (CheckpointSuperseded(commit_slot=3, step=1200, by_policy="keep_last=2"),)


def test_whoever_publishes_a_slot_says_the_same():
    one = commit_of("run-1", entry_of(MARKER), superseded=None, traceparent="")
    other = commit_of("run-1", entry_of(MARKER), superseded=None, traceparent="")
    assert encode_commit(one) == encode_commit(other)
    assert one.occurred_at == COMMITTED.committed_at
    assert len({commit_id("run-1", 1), commit_id("run-1", 2), commit_id("run-2", 1)}) == 3
