"""Acceptance state survives a restart, also in the middle of a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common import topics
from trackway_common.acceptance import Acceptance, Accepted, Rejected
from trackway_common.codec import encode_commit
from trackway_common.commit import Commit
from trackway_common.event_log import Record
from trackway_common.partitioner import partition_of
from trackway_common.testing.run_facts import RUN_ID, START
from trackway_common.testing.run_stories import killed_and_resumed
from trackway_observer.projection.heads import HeadRow, acceptance_from
from trackway_observer.projection.rows.facts import EventRow
from trackway_observer.projection.sources import FactSource

PARTITION = partition_of(RUN_ID.encode(), 12)


def commits_of(topic: str) -> list[Commit]:
    def belongs(commit: Commit) -> bool:
        if commit.stream.startswith("partitions/"):
            return topic == topics.RUNS
        return topics.topic_of(commit.stream) == topic

    return [commit for commit in killed_and_resumed().commits if belongs(commit)]


def records_of(topic: str) -> list[Record]:
    return [
        Record(
            topic=topic,
            partition=PARTITION,
            offset=offset,
            key=b"k",
            value=encode_commit(commit),
            headers=(),
            appended_at=START,
        )
        for offset, commit in enumerate(commits_of(topic))
    ]


class Table:
    """``stream_heads`` as ClickHouse keeps it: of each name the row of the greatest range."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], HeadRow] = {}

    def insert(self, rows: Sequence[HeadRow]) -> None:
        for row in rows:
            known = self.rows.get((row.kind, row.name))
            if known is None or row.range_last >= known.range_last:
                self.rows[row.kind, row.name] = row


class Loaded(FactSource):
    """A source that takes up from a table instead of a ledger."""

    def __init__(self, topic: str, table: Table, position: int) -> None:
        super().__init__(topic)
        self._acceptance = acceptance_from(topic, table.rows.values(), {PARTITION: position})


def facts_in(reading: object) -> list[str]:
    return [row.fact for row in reading.rows() if isinstance(row, EventRow)]  # type: ignore[attr-defined]


@pytest.mark.parametrize("topic", topics.FACT_TOPICS)
@given(data=st.data())
def test_a_restart_at_any_range_accepts_what_was_accepted_in_peace(topic: str, data: st.DataObject) -> None:
    records = records_of(topic)
    expected = facts_in(FactSource(topic).read(records))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(records) - 1), max_size=4)))
    table, accepted = Table(), []
    for first, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        written = data.draw(st.booleans(), label="heads of a first try that died before DONE were written")
        if written:
            table.insert(Loaded(topic, table, first).read(records[first:end]).heads)
        reading = Loaded(topic, table, first).read(records[first:end])
        table.insert(reading.heads)
        accepted += facts_in(reading)
    assert accepted == expected


def test_a_fresh_start_accepts_nothing_without_its_claim() -> None:
    records = records_of(topics.ATTEMPTS)
    assert facts_in(FactSource(topics.ATTEMPTS).read(records[1:3])) == []


def test_state_before_a_range_is_what_the_range_found() -> None:
    table = Table()
    records = records_of(topics.RUNS)
    table.insert(FactSource(topics.RUNS).read(records[:2]).heads)
    table.insert(Loaded(topics.RUNS, table, 2).read(records[2:4]).heads)
    done = acceptance_from(topics.RUNS, table.rows.values(), {PARTITION: 4})
    again = acceptance_from(topics.RUNS, table.rows.values(), {PARTITION: 2})
    third, fourth = commits_of(topics.RUNS)[2], commits_of(topics.RUNS)[4]
    assert isinstance(again.judge(PARTITION, third), Accepted)
    assert isinstance(done.judge(PARTITION, third), Rejected)
    assert isinstance(Acceptance(topics.RUNS).judge(PARTITION, third), Rejected)
    assert isinstance(done.judge(PARTITION, fourth), Accepted)


def test_poison_in_a_range_is_named_and_the_rest_is_read() -> None:
    records = records_of(topics.RUNS)
    records[1] = replace(records[1], value=b"\xff")
    reading = FactSource(topics.RUNS).read(records[:2])
    assert [poison.record.offset for poison in reading.poison] == [1]
    assert [row.kind for row in reading.heads] == ["term"]
