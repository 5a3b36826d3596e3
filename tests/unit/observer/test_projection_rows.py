"""Rows follow from commits alone, and fit their tables."""

from __future__ import annotations

import re
import typing
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common import topics
from trackway_common.commit import Commit, Request, Term, UnknownFact
from trackway_common.event_log import Record
from trackway_common.events import AgentHeartbeat, LogLine, RankHeartbeat, ServiceHeartbeat, TelemetryBatch
from trackway_common.testing.run_facts import RUN_ID, START, RunFacts
from trackway_common.testing.run_stories import killed_and_resumed, refused
from trackway_observer.projection.columns import LATEST, by_table
from trackway_observer.projection.migrations import load_migrations
from trackway_observer.projection.rows import (
    attempt_plans,
    attempts,
    checkpoints,
    evaluations,
    facts,
    messages,
    runs,
    samples,
    telemetry,
)
from trackway_observer.projection.rows.messages import dead_letter_row, request_rows
from trackway_observer.projection.rows.row import Row
from trackway_observer.projection.rows.telemetry import telemetry_rows
from trackway_observer.projection.sources import FactSource

MODULES = (attempt_plans, attempts, checkpoints, evaluations, facts, messages, runs, samples, telemetry)
ROW_TYPES = [
    kind for module in MODULES for kind in vars(module).values() if is_dataclass(kind) and hasattr(kind, "TABLE")
]
_TABLE = re.compile(r"create table if not exists (\w+) \(\n(.*?)\n\) engine", re.DOTALL)
_ADDED = re.compile(r"^alter table (\w+)\n", re.MULTILINE)
_COLUMN = re.compile(r"add column if not exists (\w+) ")


def columns(kind: type) -> list[str]:
    """Column names of a row type, groups laid flat."""
    hints = typing.get_type_hints(kind)
    nested = {field.name: hints[field.name] for field in fields(kind)}
    return [n for name, hint in nested.items() for n in (columns(hint) if is_dataclass(hint) else [name])]


def tables() -> dict[str, list[str]]:
    """Columns of every table that the migrations make, without those that fill themselves."""
    made: dict[str, list[str]] = {}
    for migration in load_migrations():
        for statement in migration.statements:
            for name, body in _TABLE.findall(statement + "\n"):
                lines = [
                    line.strip() for line in body.splitlines() if line.strip() and not line.strip().startswith("index ")
                ]
                made[name] = [line.split()[0] for line in lines if " default now64" not in line]
            for name in _ADDED.findall(statement):
                made[name] += _COLUMN.findall(statement)
    return made


@pytest.mark.parametrize("kind", ROW_TYPES, ids=lambda kind: kind.__name__)
def test_every_row_type_has_exactly_its_tables_columns(kind: type[Row]) -> None:
    assert columns(kind) == tables()[kind.TABLE]


def test_every_state_table_but_the_projectors_own_has_a_row_type() -> None:
    states = {name for name in tables() if name.endswith("_state")}
    assert states - {kind.TABLE for kind in ROW_TYPES} == {"projector_lag_state"}


def rows_of_run(run: RunFacts) -> list[Row]:
    sources = {topic: FactSource(topic) for topic in topics.FACT_TOPICS}
    made: list[Row] = []
    for offset, commit in enumerate(run.commits):
        claims_partition = commit.stream.startswith("partitions/")
        topic = topics.RUNS if claims_partition else topics.topic_of(commit.stream)
        made.extend(sources[topic].read([record_of(commit, topic, offset)]).rows())
    return made


def record_of(commit: Commit, topic: str, offset: int) -> Record:
    from trackway_common.codec import encode_commit
    from trackway_common.partitioner import partition_of

    partition = partition_of(RUN_ID.encode(), 12)
    return Record(
        topic=topic,
        partition=partition,
        offset=offset,
        key=b"k",
        value=encode_commit(commit),
        headers=(),
        appended_at=START,
    )


def test_a_run_makes_one_event_per_fact_and_the_state_of_its_phases() -> None:
    run = killed_and_resumed()
    made = rows_of_run(run)
    events = [row for row in made if isinstance(row, facts.EventRow)]
    assert len(events) == sum(len(commit.facts) for commit in run.facts_only)
    phases = [row.phase for row in made if isinstance(row, runs.RunPhaseRow)]
    assert phases == ["SUBMITTED", "QUEUED", "RUNNING", "QUEUED", "RUNNING", "EVALUATING", "SUCCEEDED"]
    [first, second] = [row for row in made if isinstance(row, attempts.EndRow)]
    assert (first.reason, first.last_committed_step) == ("UNKNOWN_KILL", 40)
    assert (second.reason, second.resumed_from_step) == ("COMPLETED", 40)


def test_rows_are_the_same_whenever_they_are_built() -> None:
    assert by_table(rows_of_run(killed_and_resumed())) == by_table(rows_of_run(killed_and_resumed()))


def test_a_refusal_keeps_each_field() -> None:
    [row] = [row for row in rows_of_run(refused()) if isinstance(row, runs.RunRefusalRow)]
    assert "topology.world_size" in row.violations


def test_a_fact_of_a_newer_schema_is_an_event_and_nothing_else() -> None:
    run = killed_and_resumed()
    known = len(rows_of_run(run))
    run.run(UnknownFact(number=190, raw=b"\xf2\x0b\x00"))  # type: ignore[arg-type]  # what the codec returns for one
    last = rows_of_run(run)[-1]
    assert isinstance(last, facts.EventRow)
    assert (last.fact, last.payload, len(rows_of_run(run))) == ("Unknown190", b"\xf2\x0b\x00", known + 1)


def test_only_an_agents_heartbeat_leaves_a_row() -> None:
    def request(body: AgentHeartbeat | ServiceHeartbeat) -> Request:
        return Request(request_id="r", sender="s", sent_at=START, traceparent="", body=body)

    assert list(request_rows(request(ServiceHeartbeat(service="observer")), 5)) == []
    [row] = request_rows(request(AgentHeartbeat(agent_id="agent-1", pool="local")), 5)
    assert isinstance(row, messages.AgentRow)
    assert (row.agent_id, row.version, row.last_seen_at) == ("agent-1", 5, START)


@given(st.text(), st.text())
def test_a_dead_letter_with_any_headers_has_a_row(partition: str, offset: str) -> None:
    headers = (("original_partition", partition.encode()), ("original_offset", offset.encode()))
    record = Record(topic=topics.DLQ, partition=0, offset=3, key=b"", value=b"\xff", headers=headers, appended_at=START)
    row = dead_letter_row(record)
    assert 0 <= row.original_partition < 2**63
    assert 0 <= row.original_offset < 2**63


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_time_of_a_rank_fits_a_column(at_ms: int) -> None:
    batch = TelemetryBatch(run_id=RUN_ID, logs=(LogLine(at_ms=at_ms),), heartbeat=RankHeartbeat(at_ms=at_ms))
    for row in telemetry_rows(batch):
        assert datetime(1970, 1, 1, tzinfo=UTC) <= row.at <= datetime(2256, 1, 1, tzinfo=UTC)  # type: ignore[attr-defined]


def test_an_absurd_clock_is_brought_within_what_a_column_holds() -> None:
    run = RunFacts()
    run.now = datetime(9999, 1, 1, tzinfo=UTC)
    run.claim("attempts/" + RUN_ID + "/1", "attempts/" + RUN_ID + "/1", Term(1, 1))
    [table] = by_table(rows_of_run(run))
    assert table.data[table.names.index("occurred_at")] == [LATEST]
