"""The log as a port, and an in-memory log that keeps the same promises."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trackway_common.clock import Clock, SystemClock
from trackway_common.codec import Headers
from trackway_common.errors import Unavailable
from trackway_common.topics import TOPICS


class UncertainAppend(Unavailable):
    """The record may or may not be in the log; only reading tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One record as the broker holds it."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: Headers
    appended_at: datetime
    """Broker's time, for people; order is (partition, offset)."""


class EventLog(Protocol):
    """Append-only topics of ordered partitions."""

    async def partition_count(self, topic: str) -> int:
        """Number of partitions. Raises Unavailable when the broker or the topic isn't there."""
        ...

    async def append(self, topic: str, partition: int, key: bytes, value: bytes, headers: Headers) -> int:
        """Append one record and return its offset once the log has acknowledged it durably.

        Success does not mean that readers accept the record: the acceptance rule decides.
        Raises:
            UncertainAppend: no acknowledgement came; the record may be there.
            Unavailable: the record was not written.
        """
        ...

    async def end_offsets(self, topic: str) -> dict[int, int]:
        """Per partition the offset that the next record gets."""
        ...

    async def begin_offsets(self, topic: str) -> dict[int, int]:
        """Per partition the oldest offset that is still there."""
        ...

    def tail(self, topic: str, positions: Mapping[int, int]) -> AsyncIterator[Sequence[Record]]:
        """Read for ever from the given offset of each partition named.

        Yields records in order within a partition, and an empty batch when nothing new came for a
        moment. Waits out a broker that is away; raises Unavailable when the log no longer holds a position.
        """
        ...

    async def close(self) -> None:
        """Let go of connections; appends in flight become uncertain."""
        ...


class InMemoryEventLog:
    """A log in this process, for tests: same order, same offsets, several readers."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._partitions = {topic.name: topic.partitions for topic in TOPICS}
        self._records: dict[tuple[str, int], list[Record]] = defaultdict(list)
        self._grew = asyncio.Condition()

    async def partition_count(self, topic: str) -> int:
        return self._count(topic)

    async def append(self, topic: str, partition: int, key: bytes, value: bytes, headers: Headers) -> int:
        if not 0 <= partition < self._count(topic):
            raise Unavailable(f"{topic} has no partition {partition}")
        records = self._records[topic, partition]
        record = Record(
            topic=topic,
            partition=partition,
            offset=len(records),
            key=key,
            value=value,
            headers=headers,
            appended_at=self._clock.now(),
        )
        async with self._grew:
            records.append(record)
            self._grew.notify_all()
        return record.offset

    async def end_offsets(self, topic: str) -> dict[int, int]:
        return {p: len(self._records[topic, p]) for p in range(self._count(topic))}

    async def begin_offsets(self, topic: str) -> dict[int, int]:
        return dict.fromkeys(range(self._count(topic)), 0)

    async def tail(self, topic: str, positions: Mapping[int, int]) -> AsyncIterator[Sequence[Record]]:
        at = dict(positions)
        while True:
            batch = self._after(topic, at)
            for record in batch:
                at[record.partition] = record.offset + 1
            yield batch
            async with self._grew:
                await self._grew.wait_for(lambda: bool(self._after(topic, at)))

    async def close(self) -> None:
        return None

    def records(self, topic: str) -> list[Record]:
        """Everything in a topic, partition by partition."""
        return [record for p in range(self._count(topic)) for record in self._records[topic, p]]

    def _after(self, topic: str, at: Mapping[int, int]) -> list[Record]:
        return [record for p, offset in at.items() for record in self._records[topic, p][offset:]]

    def _count(self, topic: str) -> int:
        if topic not in self._partitions:
            raise Unavailable(f"there is no topic {topic}")
        return self._partitions[topic]
