"""Samples of finished evaluations become rows, from the shards that the verdict names."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trackway_common.clickhouse import ClickHouse
from trackway_common.event_log import InMemoryEventLog
from trackway_common.events import EvaluationCompleted, SampleShard
from trackway_common.object_store import BlobStore, LocalObjectStore
from trackway_common.testing.run_facts import RunFacts, append_commits
from trackway_common.testing.run_stories import EVALUATION_ID, killed_and_resumed
from trackway_evaluator.worker.sample_store import SCHEMA
from trackway_observer.projection.rows.samples import EvaluationSamples

from tests.integration.observer.projecting import project

ROWS = [
    {"id": "a", "metrics": [("accuracy", 1.0)], "weight": 1.0, "slices": [("label", "7")], "failed": False},
    {"id": "b", "metrics": [], "weight": 1.0, "slices": [], "failed": False, "error": "timed out", "prompt": "def f("},
]


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    return BlobStore(LocalObjectStore(tmp_path))


def shard(blobs: BlobStore) -> SampleShard:
    body = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS, schema=SCHEMA), body)
    digest = blobs.put(body.getvalue())
    return SampleShard(task="accuracy", kind="samples", digest=digest, rows=2, size_bytes=len(body.getvalue()))


async def logged(*shards: SampleShard) -> InMemoryEventLog:
    facts = killed_and_resumed()
    log = InMemoryEventLog()
    await append_commits(log, [commit_with(facts, i, shards) for i in range(len(facts.commits))])
    return log


def commit_with(facts: RunFacts, index: int, shards: tuple[SampleShard, ...]) -> object:
    commit = facts.commits[index]
    changed = (replace(f, shards=shards) if isinstance(f, EvaluationCompleted) else f for f in commit.facts)
    return replace(commit, facts=tuple(changed))


async def test_each_sample_is_a_row_and_counts_once(database: ClickHouse, blobs: BlobStore) -> None:
    log = await logged(shard(blobs))
    for generation in (1, 2):
        await project(log, database, samples=EvaluationSamples(blobs), generation=generation)
    rows = await database.records("select * from evaluation_samples order by sample_id")
    assert [(r["evaluation_id"], r["task"], r["sample_id"]) for r in rows] == [
        (EVALUATION_ID, "accuracy", "a"),
        (EVALUATION_ID, "accuracy", "b"),
    ]
    assert (rows[0]["metrics"], rows[0]["slices"]) == ({"accuracy": 1.0}, {"label": "7"})
    assert (rows[1]["error"], rows[1]["prompt"], rows[1]["output"]) == ("timed out", "def f(", "")


async def test_a_shard_that_is_gone_or_damaged_stops_nobody(database: ClickHouse, blobs: BlobStore) -> None:
    gone = SampleShard(task="t", kind="samples", digest="sha256:" + "0" * 64, rows=1, size_bytes=1)
    damaged = replace(gone, digest=blobs.put(b"no Parquet"))
    nonsense = replace(gone, digest="no digest at all")
    log = await logged(gone, damaged, nonsense, shard(blobs))
    await project(log, database, samples=EvaluationSamples(blobs))
    assert await database.rows("select count() from evaluation_samples") == [(2,)]
    assert await database.rows("select phase, evaluation_verdict from training_runs") == [("SUCCEEDED", "PASSED")]
