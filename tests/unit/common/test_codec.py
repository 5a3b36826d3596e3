"""Every dataclass survives the wire; what is unknown is kept; garbage is named."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from datetime import UTC, datetime
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common import codec, events
from trackway_common.commit import Commit, Term, UnknownFact
from trackway_common.partitioner import murmur2, partition_of
from trackway_proto.v1 import commit_pb2

NOW = datetime(2026, 3, 4, 5, 6, 7, 891_000, tzinfo=UTC)
FACTS = typing.get_args(events.Fact)


def strategy(hint):
    if hint is datetime:
        return st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
    if typing.get_origin(hint) is tuple:
        return st.lists(strategy(typing.get_args(hint)[0]), max_size=2).map(tuple)
    if typing.get_origin(hint) is types.UnionType:
        return st.none() | strategy(typing.get_args(hint)[0])
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    if dataclasses.is_dataclass(hint):
        return st.builds(hint, **{name: strategy(h) for name, h in typing.get_type_hints(hint).items()})
    scalars = {
        int: st.integers(0, 2**31 - 1),
        float: st.floats(allow_nan=False),
        str: st.text(max_size=8),
        bool: st.booleans(),
        bytes: st.binary(max_size=8),
    }
    return scalars[hint]


def commit_of(*facts) -> Commit:
    return Commit(
        commit_id="c1",
        stream="runs/a",
        first_seq=4,
        term=Term(1, 2),
        writer_id="w",
        command_id="cmd",
        causation_id="cause",
        correlation_id="run",
        tenant="default",
        actor="someone",
        occurred_at=NOW,
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        facts=facts,
    )


@pytest.mark.parametrize("kind", FACTS, ids=lambda kind: kind.__name__)
def test_every_fact_survives_the_wire(kind):
    @given(strategy(kind))
    def survives(fact):
        assert codec.decode_commit(codec.encode_commit(commit_of(fact))).facts == (fact,)

    survives()


@pytest.mark.parametrize("kind", typing.get_args(events.RequestBody), ids=lambda kind: kind.__name__)
def test_every_request_survives_the_wire(kind):
    @given(strategy(kind))
    def survives(body):
        request = codec.Request(request_id="r", sender="s", sent_at=NOW, traceparent="", body=body)
        assert codec.decode_request(codec.encode_request(request)) == request

    survives()


def test_a_commit_keeps_its_envelope():
    commit = commit_of(events.CancelRequested(reason="x", actor="y", requested_at=NOW))
    assert codec.decode_commit(codec.encode_commit(commit)) == commit
    assert commit.last_seq == 4


def test_a_fact_of_a_newer_schema_is_kept_raw():
    raw = bytes([0xBA, 0x3E, 0x03, 0x0A, 0x01, 0x78])  # field 999, length-delimited, {1: "x"}
    decoded = codec.decode_commit(codec.encode_commit(commit_of(UnknownFact(number=999, raw=raw))))
    assert decoded.facts == (UnknownFact(number=999, raw=raw),)
    assert codec.fact_name(decoded.facts[0]) == "Unknown999"


@pytest.mark.parametrize("data", [b"", b"\xff\xff\xff", b"not protobuf at all"])
def test_garbage_is_a_corrupt_record(data):
    with pytest.raises(codec.CorruptRecord):
        codec.decode_commit(data)


def test_headers_name_the_facts_and_carry_the_trace():
    commit = commit_of(events.CancelRequested(reason="x", actor="y", requested_at=NOW))
    headers = dict(codec.commit_headers(commit))
    assert headers["ce_type"] == b"trackway.runs.commit.v1"
    assert headers["ce_events"] == b"CancelRequested"
    assert headers["traceparent"] == commit.traceparent.encode()


def test_an_enum_number_of_a_newer_schema_reads_as_unspecified():
    from trackway_proto.v1 import vocabulary_pb2

    message = vocabulary_pb2.Evidence()
    message.ParseFromString(bytes([0x10, 0x63]))  # authority = 99
    assert codec.from_message(message).authority is events.Authority.UNSPECIFIED


@pytest.mark.parametrize(
    ("key", "expected"),
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"", 275646681)],
)
def test_murmur2_is_kafkas(key, expected):
    """Vectors of org.apache.kafka.common.utils.UtilsTest."""
    assert murmur2(key) == expected % 2**32


def test_partition_is_in_range():
    assert {partition_of(str(i).encode(), 12) for i in range(500)} == set(range(12))


def test_times_that_no_calendar_has_are_corrupt():
    message = commit_pb2.Commit(commit_id="c", stream="runs/r", first_seq=1)
    message.events.add().run_cancelled.ended_at.seconds = 10**15
    with pytest.raises(codec.CorruptRecord, match="calendar"):
        codec.decode_commit(message.SerializeToString())


def test_single_facts_travel_as_they_stand_in_their_commit():
    unknown = UnknownFact(number=999, raw=b"\xba\x3e\x00")
    fact = events.RunCancelled(reason="r", ended_at=NOW)
    assert codec.decode_fact(codec.encode_fact(fact)) == fact
    assert codec.decode_fact(codec.encode_fact(unknown)) == unknown


def test_numbers_that_json_lacks_are_written_as_words():
    loss = events.MetricValue(name="loss", value=float("nan"))
    assert json.loads(codec.fact_json(loss)) == {"name": "loss", "value": "NaN"}
