"""The projection, on a real engine: every fact once, whatever dies when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from trackway_common import topics
from trackway_common.clickhouse import ClickHouse
from trackway_common.codec import encode_measurement
from trackway_common.commit import Term
from trackway_common.event_log import InMemoryEventLog
from trackway_common.events import (
    LogLine,
    MetricValue,
    RankHeartbeat,
    ResourceSample,
    StepMetrics,
    TelemetryBatch,
)
from trackway_common.history.fold import fold_run
from trackway_common.history.receipt import attempt_receipt, columns_of
from trackway_common.history.receipt.build import LastSeen
from trackway_common.ids import run_stream
from trackway_common.partitioner import partition_of
from trackway_common.testing.run_clocks import (
    failed_before_its_first_step,
    hung,
    hung_at_start,
    measured_and_resumed,
    resumed_further_back,
)
from trackway_common.testing.run_facts import RUN_ID, RunFacts, append_commits
from trackway_common.testing.run_shapes import out_of_memory
from trackway_common.testing.run_steps import placed, started, submitted
from trackway_common.testing.run_stories import cancelled_in_queue, killed, killed_and_resumed, refused, user_error
from trackway_common.testing.run_troubles import held_after_evaluation, judged_again, script_started_over, written_off

from tests.integration.observer.projecting import project

SEED_QUERY = """
select termination_reason, count(*) as attempts, sum(gpu_seconds) / 3600 as gpu_hours
from training_attempts
where model_family = 'reasoning' and started_at >= now() - interval '7 days'
group by termination_reason order by gpu_hours desc;
"""
STORIES = (
    killed_and_resumed,
    user_error,
    refused,
    cancelled_in_queue,
    script_started_over,
    written_off,
    held_after_evaluation,
    judged_again,
    measured_and_resumed,
    resumed_further_back,
    hung,
    hung_at_start,
    failed_before_its_first_step,
    out_of_memory,
)


async def logged(facts: RunFacts) -> InMemoryEventLog:
    log = InMemoryEventLog()
    await append_commits(log, facts.commits, run_id=facts.run_id)
    return log


@pytest.mark.parametrize("story", STORIES)
async def test_receipt_in_sql_equals_the_receipt_of_the_facts(
    story: Callable[[], RunFacts], database: ClickHouse
) -> None:
    facts = story()
    await project(await logged(facts), database)
    history = fold_run(RUN_ID, facts.facts_only)
    rows = await database.records("select * from training_attempts order by attempt")
    begun = [a.attempt for a in history.attempts if a.placed or a.refused]
    assert [row["attempt"] for row in rows] == begun
    for row in rows:
        expected = columns_of(attempt_receipt(history, row["attempt"]))
        assert list(row) == list(expected)
        for name, value in expected.items():
            shown = tuple(row[name]) if isinstance(value, tuple) else row[name]
            assert shown == (pytest.approx(value) if isinstance(value, float) else value), name


async def test_seed_query_runs_unchanged_and_counts_once(database: ClickHouse) -> None:
    log = await logged(killed_and_resumed(start=datetime.now(UTC)))
    for _ in range(2):
        await project(log, database)
    rows = await database.rows(SEED_QUERY)
    assert [(row[0], row[1]) for row in rows] == [("UNKNOWN_KILL", 1), ("COMPLETED", 1)]
    assert rows[0][2] == pytest.approx(62.8 / 3600)


async def test_live_attempt_reads_in_progress_and_is_counted_up_to_its_last_heartbeat(database: ClickHouse) -> None:
    facts = started(placed(submitted(RunFacts()), 1), 1)
    log = await logged(facts)
    seen_at = facts.now + timedelta(seconds=10)
    beat = RankHeartbeat(at_ms=int(seen_at.timestamp() * 1000), last_step=33)
    await measure(log, TelemetryBatch(run_id=RUN_ID, attempt=1, epoch=1, rank=0, heartbeat=beat))
    await project(log, database)
    [row] = await database.records("select * from training_attempts")
    history = fold_run(RUN_ID, facts.facts_only)
    expected = columns_of(attempt_receipt(history, 1, last_seen=LastSeen(at=seen_at, step=33)))
    assert row["termination_reason"] == "IN_PROGRESS"
    assert (row["state"], row["last_step"], row["last_seen_at"]) == ("RUNNING", 33, seen_at)
    assert row["gpu_seconds"] == pytest.approx(expected["gpu_seconds"])
    assert row["gpu_seconds"] == pytest.approx(2 * 12.0)


async def test_a_batch_sent_twice_counts_once(database: ClickHouse) -> None:
    log = InMemoryEventLog()
    batch = TelemetryBatch(
        run_id=RUN_ID,
        attempt=1,
        epoch=1,
        rank=0,
        steps=(StepMetrics(record=1, step=1, at_ms=1_000, values=(MetricValue(name="loss", value=2.5),)),),
        logs=(LogLine(record=2, at_ms=2_000, stream="stdout", text="hello", step=1),),
        samples=(ResourceSample(record=3, at_ms=3_000, memory_bytes=5, cpu_percent=50.0),),
    )
    for _ in range(2):
        await measure(log, batch)
        await project(log, database)
    assert await database.rows("select name, value from metrics") == [("loss", 2.5)]
    assert await database.rows("select text from logs") == [("hello",)]
    assert await database.rows("select memory_bytes, device_utilisation from resource_samples") == [(5, None)]


async def test_a_zombies_commit_is_kept_as_evidence_and_changes_nothing(database: ClickHouse) -> None:
    facts = killed(RunFacts())
    stale = facts.commits[-1]
    facts.claim(facts.commits[0].stream, run_stream(RUN_ID), Term(0, 2))
    facts.commits.append(replace(stale, commit_id="zombie", first_seq=stale.last_seq + 1, writer_id="zombie"))
    await project(await logged(facts), database)
    [row] = await database.records("select * from rejected_events")
    assert (row["writer_id"], row["fact"]) == ("zombie", "RunQueued")
    assert row["reason"] == "term 0.1 is not the owner's 0.2"
    assert await database.rows("select count() from queue_waits") == [(2,)]
    claims = await database.rows("select scope, epoch, claim from ownership_claims where topic = 'trackway.runs.v1'")
    assert [(epoch, claim) for _, epoch, claim in sorted(claims)] == [(0, 1), (0, 2)]


async def measure(log: InMemoryEventLog, batch: TelemetryBatch) -> None:
    key = batch.run_id.encode()
    await log.append(topics.TELEMETRY, partition_of(key, 12), key, encode_measurement(batch), ())
