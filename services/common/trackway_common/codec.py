"""Dataclasses to protobuf and back: the only place where a message's fields are reached by name.

A dataclass and its message have the same name and the same fields (both come from the .proto files),
so one generic pair of functions serves all of them. Old meanings are lifted by ``upcasters``; a oneof
member that this build does not know comes back as ``UnknownFact`` with its bytes.
"""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from trackway_proto.v1 import (
    attempt_facts_pb2,
    checkpoint_facts_pb2,
    commit_pb2,
    evaluation_facts_pb2,
    observations_pb2,
    requests_pb2,
    run_facts_pb2,
    signals_pb2,
    spec_pb2,
    telemetry_pb2,
    vocabulary_pb2,
)

from trackway_common import events
from trackway_common.commit import Commit, Request, Term, UnknownFact
from trackway_common.errors import TrackwayError
from trackway_common.events import Fact, Observations, Signal, TelemetryBatch
from trackway_common.upcasters import upcast

Headers = tuple[tuple[str, bytes], ...]

_MODULES = (
    attempt_facts_pb2,
    checkpoint_facts_pb2,
    commit_pb2,
    evaluation_facts_pb2,
    observations_pb2,
    requests_pb2,
    run_facts_pb2,
    signals_pb2,
    spec_pb2,
    telemetry_pb2,
    vocabulary_pb2,
)


_NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


class CorruptRecord(TrackwayError):
    """A record that is no message of ours; it goes to the dead letters."""


def encode_commit(commit: Commit) -> bytes:
    """Return the record value of a commit."""
    message = commit_pb2.Commit(
        commit_id=commit.commit_id,
        stream=commit.stream,
        first_seq=commit.first_seq,
        term=commit_pb2.Term(epoch=commit.term.epoch, claim=commit.term.claim),
        writer_id=commit.writer_id,
        command_id=commit.command_id,
        causation_id=commit.causation_id,
        correlation_id=commit.correlation_id,
        tenant=commit.tenant,
        actor=commit.actor,
        occurred_at=_timestamp(commit.occurred_at),
        traceparent=commit.traceparent,
        events=[_event(fact) for fact in commit.facts],
    )
    return message.SerializeToString(deterministic=True)


def parse_commit(data: bytes) -> commit_pb2.Commit:
    """Parse a record value as far as every commit is alike; its facts are left as they are.

    Raises:
        CorruptRecord: the bytes are no commit, or one without id, stream or events.
    """
    message: commit_pb2.Commit = _parse(commit_pb2.Commit(), data)
    if not message.commit_id or "/" not in message.stream or not message.events:
        raise CorruptRecord("a commit needs an id, a stream and at least one event")
    return message


def decode_commit(data: bytes) -> Commit:
    """Parse a record value.

    Raises:
        CorruptRecord: the bytes are no commit, or one without id, stream or events.
    """
    message = parse_commit(data)
    return Commit(
        commit_id=message.commit_id,
        stream=message.stream,
        first_seq=message.first_seq,
        term=Term(message.term.epoch, message.term.claim),
        writer_id=message.writer_id,
        command_id=message.command_id,
        causation_id=message.causation_id,
        correlation_id=message.correlation_id,
        tenant=message.tenant,
        actor=message.actor,
        occurred_at=_datetime(message.occurred_at),
        traceparent=message.traceparent,
        facts=tuple(_fact(event) for event in message.events),
    )


def commit_headers(commit: Commit) -> Headers:
    """Return CloudEvents binary-mode headers and the trace context of a commit."""
    kind = commit.stream.partition("/")[0]
    named = {
        "ce_specversion": "1.0",
        "ce_type": f"trackway.{kind}.commit.v1",
        "ce_id": commit.commit_id,
        "ce_source": f"/{commit.writer_id}",
        "ce_subject": commit.stream,
        "ce_events": ",".join(fact_name(fact) for fact in commit.facts),
        "content-type": "application/protobuf",
        "traceparent": commit.traceparent,
    }
    return tuple((name, value.encode()) for name, value in named.items() if value)


def encode_fact(fact: Fact | UnknownFact) -> bytes:
    """Return one fact as it stands in its commit; of a newer schema's, the bytes that came."""
    return _event(fact).SerializeToString(deterministic=True)


def decode_fact(data: bytes) -> Fact | UnknownFact:
    """Parse what ``encode_fact`` returned.

    Raises:
        CorruptRecord: the bytes are no fact.
    """
    return _fact(_parse(commit_pb2.Event(), data))


def encode_request(request: Request) -> bytes:
    """Return the record value of a request."""
    member = _snake(type(request.body).__name__)
    message = requests_pb2.Request(
        request_id=request.request_id,
        sender=request.sender,
        sent_at=_timestamp(request.sent_at),
        traceparent=request.traceparent,
        **{member: to_message(request.body)},
    )
    return message.SerializeToString(deterministic=True)


def decode_request(data: bytes) -> Request | None:
    """Parse a record of the commands topic; None when it asks for what this build doesn't know.

    Raises:
        CorruptRecord: the bytes are no request.
    """
    message = _parse(requests_pb2.Request(), data)
    member = message.WhichOneof("body")
    if member is None:
        return None
    return Request(
        request_id=message.request_id,
        sender=message.sender,
        sent_at=_datetime(message.sent_at),
        traceparent=message.traceparent,
        body=from_message(getattr(message, member)),
    )


def encode_measurement(measurement: TelemetryBatch | Signal) -> bytes:
    """Return the record value of a telemetry batch or a signal."""
    return bytes(to_message(measurement).SerializeToString(deterministic=True))


def decode_telemetry(data: bytes) -> TelemetryBatch:
    """Parse a telemetry record.

    Raises:
        CorruptRecord: the bytes are no batch, or one that names no run.
    """
    batch: TelemetryBatch = from_message(_parse(telemetry_pb2.TelemetryBatch(), data))
    if not batch.run_id:
        raise CorruptRecord("a telemetry batch needs a run id")
    return batch


def decode_signal(data: bytes) -> Signal:
    """Parse a signal record.

    Raises:
        CorruptRecord: the bytes are no signal.
    """
    signal: Signal = from_message(_parse(signals_pb2.Signal(), data))
    if not signal.signal_id:
        raise CorruptRecord("a signal needs an id")
    return signal


def encode_observations(seen: Observations) -> bytes:
    """Return the blob of an attempt's observations."""
    return bytes(to_message(seen).SerializeToString(deterministic=True))


def decode_observations(data: bytes) -> Observations:
    """Parse what ``encode_observations`` returned.

    Raises:
        CorruptRecord: the bytes are none.
    """
    seen: Observations = from_message(_parse(observations_pb2.Observations(), data))
    return seen


def fact_name(fact: Fact | UnknownFact) -> str:
    """Name of a fact, such as AttemptPlaced; ``Unknown<number>`` for one of a newer schema."""
    return f"Unknown{fact.number}" if isinstance(fact, UnknownFact) else type(fact).__name__


def fact_fields(fact: Any) -> Any:
    """Return a dataclass as JSON values: times as ISO 8601, enums by name, bytes as hex, NaN as "NaN"."""
    match fact:
        case _ if dataclasses.is_dataclass(fact) and not isinstance(fact, type):
            return {field.name: fact_fields(getattr(fact, field.name)) for field in dataclasses.fields(fact)}
        case tuple():
            return [fact_fields(item) for item in fact]
        case datetime():
            return fact.isoformat()
        case bytes():
            return fact.hex()
        case float() if not math.isfinite(fact):
            return _NOT_FINITE[str(fact)]
    return fact


def fact_json(fact: Any) -> str:
    """``fact_fields`` as compact JSON."""
    return json.dumps(fact_fields(fact), separators=(",", ":"), ensure_ascii=False)


def to_message(value: Any) -> Any:
    """Return the protobuf message of a dataclass of ``trackway_common.events``."""
    message = _message_type(type(value).__name__)()
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if item is None:
            continue
        if isinstance(item, tuple):
            getattr(message, field.name).extend(_to_wire(element) for element in item)
        elif isinstance(item, datetime) or dataclasses.is_dataclass(item):
            getattr(message, field.name).CopyFrom(_to_wire(item))
        else:
            setattr(message, field.name, _to_wire(item))
    return message


def fill_message(message: Any, value: Any) -> Any:
    """Set a message's fields from a dataclass of the same fields, whatever the two are called; returns the message."""
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if isinstance(item, tuple):
            _fill_many(getattr(message, field.name), item)
        elif isinstance(item, datetime):
            getattr(message, field.name).CopyFrom(_timestamp(item))
        elif dataclasses.is_dataclass(item):
            fill_message(getattr(message, field.name), item).SetInParent()
        elif item is not None:
            setattr(message, field.name, str(item) if isinstance(item, StrEnum) else item)
    return message


def _fill_many(repeated: Any, items: tuple[Any, ...]) -> None:
    for item in items:
        if dataclasses.is_dataclass(item):
            fill_message(repeated.add(), item)
        else:
            repeated.append(item)


def from_message(message: Any, kind: Any = None) -> Any:
    """Return the dataclass of a protobuf message.

    Args:
        kind: the dataclass; the one of the message's name in ``trackway_common.events`` when absent.
    """
    kind = kind or getattr(events, message.DESCRIPTOR.name)
    return kind(**{name: _field(message, name, shape) for name, shape in _shape(kind).items()})


@dataclasses.dataclass(frozen=True, slots=True)
class _FieldShape:
    kind: Any
    many: bool
    optional: bool


def _field(message: Any, name: str, shape: _FieldShape) -> Any:
    if shape.many:
        return tuple(_from_wire(item, shape.kind) for item in getattr(message, name))
    if shape.optional and not message.HasField(name):
        return None
    return _from_wire(getattr(message, name), shape.kind)


def _from_wire(item: Any, kind: Any) -> Any:
    if kind is datetime:
        return _datetime(item)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return _enum_member(kind, item)
    if isinstance(item, Struct):
        return MessageToDict(item)
    return from_message(item, kind) if dataclasses.is_dataclass(kind) else item


def _to_wire(item: Any) -> Any:
    if isinstance(item, StrEnum):
        return _enum_type(type(item)).Value(_enum_prefix(type(item).__name__) + item.value)
    if isinstance(item, datetime):
        return _timestamp(item)
    return to_message(item) if dataclasses.is_dataclass(item) else item


@cache
def _shape(kind: Any) -> dict[str, _FieldShape]:
    return {name: _field_shape(hint) for name, hint in typing.get_type_hints(kind).items()}


def _field_shape(hint: Any) -> _FieldShape:
    origin = typing.get_origin(hint)
    if origin is tuple:
        return _FieldShape(typing.get_args(hint)[0], many=True, optional=False)
    if origin is types.UnionType:
        return _FieldShape(typing.get_args(hint)[0], many=False, optional=True)
    return _FieldShape(hint, many=False, optional=False)


@cache
def _message_type(name: str) -> Any:
    return next(getattr(module, name) for module in _MODULES if hasattr(module, name))


@cache
def _enum_type(kind: type[StrEnum]) -> Any:
    return next(getattr(module, kind.__name__) for module in _MODULES if hasattr(module, kind.__name__))


@cache
def _enum_prefix(name: str) -> str:
    return _snake(name).upper() + "_"


def _enum_member(kind: type[StrEnum], number: int) -> StrEnum:
    descriptor = _enum_type(kind).DESCRIPTOR.values_by_number.get(number)
    if descriptor is None:
        return kind("UNSPECIFIED")
    return kind(descriptor.name.removeprefix(_enum_prefix(kind.__name__)))


@cache
def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _event(fact: Fact | UnknownFact) -> commit_pb2.Event:
    if isinstance(fact, UnknownFact):
        return commit_pb2.Event.FromString(fact.raw)
    event = commit_pb2.Event()
    getattr(event, _snake(type(fact).__name__)).CopyFrom(to_message(fact))
    return event


def _fact(event: commit_pb2.Event) -> Fact | UnknownFact:
    member = event.WhichOneof("body")
    if member is None:
        raw = event.SerializeToString()
        return UnknownFact(number=_first_field_number(raw), raw=raw)
    lifted = upcast(getattr(event, member))
    return typing.cast("Fact", from_message(lifted))


def _first_field_number(raw: bytes) -> int:
    """Field number of the first tag in a message (protobuf encoding, base-128 varint)."""
    value = 0
    for shift, byte in enumerate(raw):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            break
    return value >> 3


def _parse(message: Any, data: bytes) -> Any:
    try:
        parsed: Message = message
        parsed.ParseFromString(data)
    except DecodeError as error:
        raise CorruptRecord(f"not a {message.DESCRIPTOR.name}: {error}") from error
    return parsed


def _timestamp(moment: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp


def _datetime(stamp: Timestamp) -> datetime:
    try:
        return stamp.ToDatetime(tzinfo=UTC)
    except ValueError as error:
        raise CorruptRecord(f"a time that no calendar has: {error}") from error
