"""Copies a live log: all that was there when it began, record by record, with the verdict on each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import cast

from trackway_common.acceptance import Acceptance
from trackway_common.codec import CorruptRecord, decode_commit, decode_telemetry
from trackway_common.errors import CommandRejected, NotFound, Unavailable
from trackway_common.event_log import EventLog, Record
from trackway_common.ids import is_uuid7
from trackway_common.log_copy.judge import Judged, judge
from trackway_common.log_copy.manifest import Scope
from trackway_common.log_copy.run_lines import RunLines
from trackway_common.log_copy.segment import Copied, Standing
from trackway_common.log_copy.writer import LogCopyWriter
from trackway_common.partitioner import partition_of
from trackway_common.topics import FACT_TOPICS, RUNS, TELEMETRY

SILENCE_S = 30.0
"""A broker that gives nothing for so long while records are still due is away."""


@dataclass(slots=True)
class Copying:
    """One copy in the making."""

    log: EventLog
    writer: LogCopyWriter
    scope: Scope
    telemetry_bytes: int
    """Most telemetry that is copied; 0 copies none."""
    lines: RunLines = field(default_factory=RunLines)
    telemetry_left_out: int = 0

    async def run(self) -> None:
        """Copy everything in scope.

        Raises:
            Unavailable: the broker went away.
        """
        topics = (*FACT_TOPICS, TELEMETRY) if self.telemetry_bytes else FACT_TOPICS
        # All ends first: what a fact was caused by lies below the ends, too.
        ends = {topic: await self._ends(topic) for topic in topics}
        for topic in FACT_TOPICS:
            await self._copy_facts(topic, ends[topic])
        if self.telemetry_bytes:
            await self._copy_telemetry(ends[TELEMETRY])

    async def _ends(self, topic: str) -> Mapping[int, tuple[int, int]]:
        """First and end offset of each partition in scope."""
        begins, ends = await self.log.begin_offsets(topic), await self.log.end_offsets(topic)
        chosen = (
            {partition_of(self.scope.run_id.encode(), len(ends))} if self.scope.run_id else set(ends)
        )  # a run's records share a partition in every topic
        return {p: (begins[p], ends[p]) for p in sorted(chosen)}

    async def _copy_facts(self, topic: str, ends: Mapping[int, tuple[int, int]]) -> None:
        acceptance = Acceptance(topic)
        for partition, (first, end) in ends.items():
            self.writer.open_segment(topic, partition, first, end)
        async for record in records_until(self.log, topic, ends):
            judged = judge(acceptance, record)
            if topic == RUNS and judged.copied.standing is Standing.ACCEPTED and judged.stream.startswith("runs/"):
                self.lines.take(decode_commit(record.value))
            if self._in_scope(judged):
                self.writer.add(judged.root, judged.stream, judged.copied)

    def _in_scope(self, judged: Judged) -> bool:
        """Claims of partitions always are: without them no verdict could be checked."""
        if self.scope.everything or (judged.claim and judged.stream.startswith("partitions/")):
            return True
        root = judged.root.removeprefix("poison/")
        if self.scope.run_id:
            return root == self.scope.run_id
        return self.lines.project(root) == self.scope.project

    async def _copy_telemetry(self, ends: Mapping[int, tuple[int, int]]) -> None:
        room = self.telemetry_bytes
        for partition, (first, end) in ends.items():
            self.writer.open_segment(TELEMETRY, partition, first, end)
        async for record in records_until(self.log, TELEMETRY, ends):
            run_id = record.key.decode(errors="replace")
            if not self._telemetry_in_scope(run_id):
                continue
            self._hear(record)
            if len(record.value) > room:
                # Once one did not fit, none does: what is there has no holes but its end.
                room, self.telemetry_left_out = 0, self.telemetry_left_out + 1
                continue
            room -= len(record.value)
            self.writer.add(run_id, f"telemetry/{run_id}", Copied(record=record, standing=Standing.MEASURED))

    def _telemetry_in_scope(self, run_id: str) -> bool:
        if self.scope.run_id:
            return run_id == self.scope.run_id
        return self.scope.everything or self.lines.project(run_id) == self.scope.project

    def _hear(self, record: Record) -> None:
        """Heartbeats are kept however little telemetry is: they say how far a running attempt came."""
        try:
            batch = decode_telemetry(record.value)
        except CorruptRecord:
            return
        if batch.heartbeat is not None:
            key, seen = (batch.run_id, batch.attempt), (batch.heartbeat.at_ms, batch.heartbeat.last_step)
            at_ms, step = self.writer.heartbeats.get(key, (0, 0))
            self.writer.heartbeats[key] = max(at_ms, seen[0]), max(step, seen[1])


async def records_until(log: EventLog, topic: str, ends: Mapping[int, tuple[int, int]]) -> AsyncIterator[Record]:
    """Yield every record between the first and the end offset of each partition, in order within it.

    Raises:
        Unavailable: nothing came for ``SILENCE_S`` though records are due.
    """
    due = {p: end for p, (first, end) in ends.items() if end > first}
    if not due:
        return
    positions = {p: ends[p][0] for p in due}
    tail = cast("AsyncGenerator[Sequence[Record], None]", log.tail(topic, positions))
    async with aclosing(tail) as batches:
        while due:
            for record in await _next(batches, topic):
                if record.offset < due.get(record.partition, 0):
                    yield record
                if record.offset + 1 >= due.get(record.partition, 0):
                    due.pop(record.partition, None)


async def _next(batches: AsyncIterator[Sequence[Record]], topic: str) -> Sequence[Record]:
    try:
        async with asyncio.timeout(SILENCE_S):
            while True:
                if batch := await anext(batches):
                    return batch
    except TimeoutError as error:
        raise Unavailable(
            f"{topic} gives nothing though records are due; export again when the broker is back"
        ) from error


async def full_run_id(log: EventLog, beginning: str) -> str:
    """Id of the one run that this is, or is the beginning of.

    Raises:
        NotFound: there is none.
        CommandRejected: there are several.
    """
    begins, ends = await log.begin_offsets(RUNS), await log.end_offsets(RUNS)
    found: set[str] = set()
    async for record in records_until(log, RUNS, {p: (begins[p], end) for p, end in ends.items()}):
        key = record.key.decode(errors="replace")
        if key.startswith(beginning) and is_uuid7(key):
            found.add(key)
    if beginning in found:
        return beginning
    if len(found) > 1:
        raise CommandRejected(f"several runs begin with {beginning!r}; write more of the id", reason="AMBIGUOUS")
    if not found or not beginning:
        raise NotFound(f"the log has no run {beginning!r}; `trackway train list` shows them")
    return found.pop()
