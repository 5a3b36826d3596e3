"""Records in a file: each a ``CopiedRecord`` behind its length, as protobuf delimits messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import BinaryIO

from google.protobuf.message import DecodeError
from trackway_proto.v1.log_copy_pb2 import CopiedHeader, CopiedRecord, CopiedVerdict

from trackway_common.codec import CorruptRecord, parse_commit
from trackway_common.commit import Commit, Term, UnknownFact
from trackway_common.event_log import Record
from trackway_common.events import OwnershipClaimed

MAX_FRAME_BYTES = 64 << 20
"""Far above what a broker takes: a longer length is damage, not a record."""
MAX_LENGTH_BYTES = 10
"""A varint has no more."""
_CLAIM = "ownership_claimed"


class Standing(StrEnum):
    """What the acceptance rule said about a record."""

    ACCEPTED = "ACCEPTED"
    CLAIMED = "CLAIMED"
    DUPLICATE = "DUPLICATE"
    REJECTED = "REJECTED"
    POISON = "POISON"
    MEASURED = "MEASURED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """One record and how it stands."""

    record: Record
    standing: Standing
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a record lies in its file."""

    position: int
    size: int
    copied: Copied


def write_frame(file: BinaryIO, copied: Copied) -> int:
    """Append one record and return its size with its length."""
    record = copied.record
    message = CopiedRecord(
        partition=record.partition,
        offset=record.offset,
        appended_at_ms=round(record.appended_at.timestamp() * 1000),
        key=record.key,
        value=record.value,
        headers=[CopiedHeader(name=name, value=value) for name, value in record.headers],
        verdict=CopiedVerdict.Value(f"COPIED_VERDICT_{copied.standing}"),
        refusal=copied.refusal,
    )
    body = message.SerializeToString(deterministic=True)
    length = _varint(len(body))
    file.write(length + body)
    return len(length) + len(body)


def read_frames(file: BinaryIO, topic: str) -> Iterator[Frame]:
    """Yield every record of a file.

    Raises:
        CorruptRecord: the file ends inside a record, or holds something else.
    """
    position = 0
    while header := file.read(1):
        while header[-1] & 0x80:
            if len(header) == MAX_LENGTH_BYTES:
                raise CorruptRecord(f"no length of a record at byte {position}")
            header += _exactly(file, 1, position)
        size = _number(header)
        if size > MAX_FRAME_BYTES:
            raise CorruptRecord(f"a record of {size} bytes at byte {position}: no length")
        whole = len(header) + size
        yield Frame(position, whole, _copied(_exactly(file, size, position), topic))
        position += whole


def read_frame(file: BinaryIO, position: int, size: int, topic: str) -> Copied:
    """Read the one record that the index points at.

    Raises:
        CorruptRecord: there is none.
    """
    file.seek(position)
    frame = _exactly(file, size, position)
    header = next((i + 1 for i, byte in enumerate(frame[:MAX_LENGTH_BYTES]) if byte < 0x80), 0)
    if not header or _number(frame[:header]) != size - header:
        raise CorruptRecord(f"no record of {size} bytes at byte {position}")
    return _copied(frame[header:], topic)


def decode_envelope(data: bytes) -> Commit:
    """Parse as much of a commit as the acceptance rule asks for; a tenth of the time of the whole.

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
        causation_id="",
        correlation_id="",
        tenant="",
        actor=message.actor,
        occurred_at=datetime.fromtimestamp(0, UTC),
        traceparent="",
        facts=tuple(
            OwnershipClaimed(endpoint="") if event.WhichOneof("body") == _CLAIM else UnknownFact(number=0, raw=b"")
            for event in message.events
        ),
    )


def _copied(body: bytes, topic: str) -> Copied:
    message = CopiedRecord()
    try:
        message.ParseFromString(body)
        standing = Standing(CopiedVerdict.Name(message.verdict).removeprefix("COPIED_VERDICT_"))
    except (DecodeError, ValueError) as error:
        raise CorruptRecord(f"no copied record: {error}") from error
    record = Record(
        topic=topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=tuple((header.name, header.value) for header in message.headers),
        appended_at=datetime.fromtimestamp(message.appended_at_ms / 1000, UTC),
    )
    return Copied(record=record, standing=standing, refusal=message.refusal)


def _exactly(file: BinaryIO, size: int, position: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise CorruptRecord(f"the file ends inside the record at byte {position}")
    return data


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _number(varint: bytes) -> int:
    return sum((byte & 0x7F) << 7 * i for i, byte in enumerate(varint))
