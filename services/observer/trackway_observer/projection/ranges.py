"""Cut records of one partition into the ranges that are inserted together. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trackway_common.event_log import Record

from trackway_observer.projection.ledger import OffsetRange

MAX_RECORDS = 2_000
MAX_BYTES = 8 << 20
"""Larger ranges make fewer parts; these stay under a second of work and one block of rows."""


class RangeCutter:
    """Cuts one partition's records; the range that was interrupted is cut exactly as it was before."""

    def __init__(self, pending: OffsetRange | None = None) -> None:
        self._pending = pending
        self._held: list[Record] = []

    def cut(self, records: Sequence[Record]) -> Iterator[tuple[Record, ...]]:
        """Yield ranges of the records that came; those of an interrupted range wait until all of them are here."""
        rest = list(records)
        if self._pending is not None:
            last = self._pending.last
            self._held += [record for record in rest if record.offset <= last]
            rest = [record for record in rest if record.offset > last]
            is_whole = bool(self._held) and self._held[-1].offset == last
            if not is_whole and not rest:
                return
            if self._held:
                yield tuple(self._held)
            self._pending, self._held = None, []
        yield from _chunks(rest)


def range_of(records: Sequence[Record]) -> OffsetRange:
    """The range that the records span."""
    first, last = records[0], records[-1]
    return OffsetRange(
        topic=last.topic,
        partition=last.partition,
        first=first.offset,
        last=last.offset,
        appended_at=last.appended_at,
    )


def _chunks(records: Sequence[Record]) -> Iterator[tuple[Record, ...]]:
    chunk: list[Record] = []
    size_bytes = 0
    for record in records:
        if chunk and (len(chunk) == MAX_RECORDS or size_bytes + len(record.value) > MAX_BYTES):
            yield tuple(chunk)
            chunk, size_bytes = [], 0
        chunk.append(record)
        size_bytes += len(record.value)
    if chunk:
        yield tuple(chunk)
