"""Whatever a fact holds, it has rows that fit their columns: no record can stop the projection."""

from __future__ import annotations

import dataclasses
import types
import typing
from datetime import UTC, datetime
from enum import StrEnum

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trackway_common import events, topics
from trackway_common.acceptance import Accepted
from trackway_common.codec import decode_commit, encode_commit
from trackway_common.commit import Commit, Term
from trackway_common.event_log import Record
from trackway_common.fact_reader import Judged
from trackway_observer.projection.columns import EARLIEST, LATEST, by_table
from trackway_observer.projection.rows.facts import rows_of

FACTS = typing.get_args(events.Fact)
STREAMS = ("runs/r", "attempts/r/1", "attempts/r", "attempts/r/²", "checkpoints/r", "evaluations/r", "pools/p", "x/")


NUMBERS = {
    "observed_at_ms": st.integers(-(2**63), 2**63 - 1),
    **dict.fromkeys(("step", "slot", "size_bytes", "first_step", "last_step", "seed"), st.integers(0, 2**64 - 1)),
}


def fields_of(kind: type) -> dict[str, st.SearchStrategy[typing.Any]]:
    hints = typing.get_type_hints(kind)
    return {name: NUMBERS[name] if name in NUMBERS else strategy(hint) for name, hint in hints.items()}


def strategy(hint: typing.Any) -> st.SearchStrategy[typing.Any]:
    if hint is datetime:
        return st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))
    if typing.get_origin(hint) is tuple:
        return st.lists(strategy(typing.get_args(hint)[0]), max_size=2).map(tuple)
    if typing.get_origin(hint) is types.UnionType:
        return st.none() | strategy(typing.get_args(hint)[0])
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    if dataclasses.is_dataclass(hint):
        return st.builds(hint, **fields_of(hint))
    scalars = {int: st.sampled_from([0, 1, 2**31 - 1]), float: st.floats(), str: st.text(max_size=8)}
    return scalars.get(hint, st.booleans())


@pytest.mark.parametrize("kind", FACTS, ids=lambda kind: kind.__name__)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data())
def test_any_fact_in_any_stream_of_any_topic_has_rows_that_fit(kind: type, data: st.DataObject) -> None:
    fact = data.draw(strategy(kind))
    stream = data.draw(st.sampled_from(STREAMS))
    judged = accepted(fact, stream, data.draw(st.sampled_from(topics.FACT_TOPICS)))
    tables = by_table(rows_of(judged))
    assert [table.table for table in tables][:1] == ["events_state"]
    for table in tables:
        for column in table.data:
            assert all(fits(value) for value in column), (table.table, column)


def accepted(fact: events.Fact, stream: str, topic: str) -> Judged:
    commit = Commit(
        commit_id="c",
        stream=stream,
        first_seq=1,
        term=Term(1, 1),
        writer_id="w",
        command_id="",
        causation_id="",
        correlation_id="",
        tenant="",
        actor="",
        occurred_at=datetime(2026, 1, 1, tzinfo=UTC),
        traceparent="",
        facts=(fact,),
    )
    record = Record(
        topic=topic, partition=0, offset=0, key=b"", value=encode_commit(commit), headers=(), appended_at=EARLIEST
    )
    return Judged(record=record, commit=decode_commit(record.value), verdict=Accepted())


def fits(value: object) -> bool:
    match value:
        case bool() | None | str() | bytes() | float():
            return True
        case int():
            return -(2**63) <= value < 2**64
        case datetime():
            return EARLIEST <= value <= LATEST
        case tuple():
            return all(fits(item) for item in value)
    return False
