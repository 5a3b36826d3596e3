"""Read a fact topic through the acceptance rule, and the commands topic as requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from trackway_common.acceptance import Acceptance, Accepted, Verdict
from trackway_common.clock import Clock, SystemClock
from trackway_common.codec import CorruptRecord, decode_commit, decode_request
from trackway_common.commit import Commit, Request
from trackway_common.dead_letters import DeadLetters
from trackway_common.errors import Unavailable
from trackway_common.event_log import EventLog, Record
from trackway_common.topics import COMMANDS

log = logging.getLogger(__name__)

RECONNECT_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A record, what it says, and whether it counts."""

    record: Record
    commit: Commit
    verdict: Verdict

    @property
    def accepted(self) -> bool:
        """True when the commit's facts happened."""
        return isinstance(self.verdict, Accepted)


class TopicTail:
    """Tail of a topic that knows when it has read all that was there when it began."""

    def __init__(
        self, event_log: EventLog, topic: str, positions: Mapping[int, int] | None = None, clock: Clock | None = None
    ) -> None:
        self._log = event_log
        self._topic = topic
        self._positions = positions
        self._clock = clock or SystemClock()
        self.caught_up = asyncio.Event()
        """Set once everything that was in the topic when reading began has been yielded and taken."""

    async def read(self) -> AsyncIterator[Sequence[Record]]:
        """Yield batches for ever; waits for a broker that is not there yet."""
        at, ends = await self._begin()
        self._notice_end(at, ends)
        async for batch in self._log.tail(self._topic, at):
            yield batch
            for record in batch:
                at[record.partition] = record.offset + 1
            self._notice_end(at, ends)

    async def _begin(self) -> tuple[dict[int, int], dict[int, int]]:
        while True:
            try:
                begins = await self._log.begin_offsets(self._topic)
                ends = await self._log.end_offsets(self._topic)
            except Unavailable as error:
                log.info("waiting for the log", extra={"topic": self._topic, "error": str(error)})
                await self._clock.sleep(RECONNECT_S)
            else:
                return begins | dict(self._positions or {}), ends

    def _notice_end(self, at: Mapping[int, int], ends: Mapping[int, int]) -> None:
        if not self.caught_up.is_set() and all(at[p] >= end for p, end in ends.items()):
            self.caught_up.set()


class FactReader:
    """Reads every commit of a fact topic with its verdict.

    Poison goes to the dead letters when they are given, else it is logged and passed over: one reader of a
    topic buries (the observer), or each restart of each service would bury the same record again.
    """

    def __init__(
        self,
        event_log: EventLog,
        topic: str,
        dead_letters: DeadLetters | None = None,
        *,
        positions: Mapping[int, int] | None = None,
        acceptance: Acceptance | None = None,
    ) -> None:
        self._tail = TopicTail(event_log, topic, positions)
        self._dead_letters = dead_letters
        self.caught_up = self._tail.caught_up
        self.acceptance = acceptance or Acceptance(topic)

    async def read(self) -> AsyncIterator[tuple[Judged, ...]]:
        """Yield judged commits in order within a partition; an empty tuple when nothing new came."""
        async for batch in self._tail.read():
            judged = [await self._judge(record) for record in batch]
            yield tuple(item for item in judged if item is not None)

    async def _judge(self, record: Record) -> Judged | None:
        try:
            commit = decode_commit(record.value)
        except CorruptRecord as error:
            await _bury(self._dead_letters, record, str(error))
            return None
        return Judged(record=record, commit=commit, verdict=self.acceptance.judge(record.partition, commit))


class RequestReader:
    """Reads the commands topic."""

    def __init__(
        self,
        event_log: EventLog,
        dead_letters: DeadLetters | None = None,
        *,
        positions: Mapping[int, int] | None = None,
    ) -> None:
        self._tail = TopicTail(event_log, COMMANDS, positions)
        self._dead_letters = dead_letters
        self.caught_up = self._tail.caught_up

    async def read(self) -> AsyncIterator[tuple[Request, ...]]:
        """Yield requests in order; those that this build doesn't know are passed over."""
        async for batch in self._tail.read():
            requests = [await self._decode(record) for record in batch]
            yield tuple(request for request in requests if request is not None)

    async def _decode(self, record: Record) -> Request | None:
        try:
            return decode_request(record.value)
        except CorruptRecord as error:
            await _bury(self._dead_letters, record, str(error))
            return None


async def _bury(dead_letters: DeadLetters | None, record: Record, why: str) -> None:
    if dead_letters is not None:
        await dead_letters.bury(record, why)
        return
    where = {"topic": record.topic, "partition": record.partition, "offset": record.offset, "why": why}
    log.warning("poison record passed over", extra=where)
