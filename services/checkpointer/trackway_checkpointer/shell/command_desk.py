"""Takes commands from the log and has them carried out: one run's in their order, different runs' side by side."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from trackway_common.clock import Clock
from trackway_common.codec import CorruptRecord, decode_request
from trackway_common.commit import Request
from trackway_common.errors import Unavailable
from trackway_common.event_log import EventLog, Record
from trackway_common.events import CommitCheckpoint, SyncCommitLog
from trackway_common.fact_reader import TopicTail
from trackway_common.service import with_backoff
from trackway_common.topics import COMMANDS

from trackway_checkpointer.adapters.reading_position import ReadingPosition

log = logging.getLogger(__name__)

SAVE_EVERY_S = 5.0
"""Between two notes of the position: what is read again after a crash is at most this much, and harmless."""
RETRY_S = 1.0
MAX_RUNNING = 64
"""Commands taken ahead; beyond it the topic waits."""

Command = CommitCheckpoint | SyncCommitLog
CarryOut = Callable[[Command, str], Awaitable[None]]
"""Carries out a command under a traceparent. Idempotent; raises ``Unavailable`` to be called again, nothing else."""


@dataclass(slots=True)
class _Progress:
    """Offsets in work, and how far each partition was read."""

    read_to: dict[int, int]
    in_work: set[tuple[int, int]] = field(default_factory=set)

    def done_before(self) -> dict[int, int]:
        """Per partition the offset that all work before is done for."""
        done = dict(self.read_to)
        for partition, offset in self.in_work:
            done[partition] = min(done[partition], offset)
        return done


class CommandDesk:
    """Reads the commands topic from where all earlier work is done."""

    def __init__(self, event_log: EventLog, position: ReadingPosition, carry_out: CarryOut, clock: Clock) -> None:
        self._log = event_log
        self._position = position
        self._carry_out = carry_out
        self._clock = clock
        self._lanes: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._places = asyncio.Semaphore(MAX_RUNNING)
        self._tail: asyncio.Future[TopicTail] = asyncio.get_running_loop().create_future()

    async def caught_up(self) -> None:
        """Return once every command that was there at the start was taken."""
        tail = await asyncio.shield(self._tail)
        await tail.caught_up.wait()

    async def run(self) -> None:
        """Work for ever."""
        progress = _Progress(await self._first_positions())
        tail = TopicTail(self._log, COMMANDS, progress.read_to, self._clock)
        self._tail.set_result(tail)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._save(progress), name="save position")
            async for batch in tail.read():
                for record in batch:
                    await self._take(tasks, progress, record)

    async def _take(self, tasks: asyncio.TaskGroup, progress: _Progress, record: Record) -> None:
        request = _decoded(record)
        if request is not None and isinstance(request.body, CommitCheckpoint | SyncCommitLog):
            await self._places.acquire()
            place = (record.partition, record.offset)
            progress.in_work.add(place)
            tasks.create_task(self._work(progress, place, request.body, request.traceparent))
        progress.read_to[record.partition] = record.offset + 1

    async def _work(self, progress: _Progress, place: tuple[int, int], command: Command, traceparent: str) -> None:
        try:
            # Tasks start in the order of their records and locks are handed on in order: a run's commands keep theirs.
            async with self._lanes[command.run_id]:
                carry_out = partial(self._carry_out, command, traceparent)
                await with_backoff(carry_out, self._clock, what=f"storage of run {command.run_id}", retry_s=RETRY_S)
            progress.in_work.discard(place)
        finally:
            self._places.release()

    async def _first_positions(self) -> dict[int, int]:
        positions: dict[int, int] = {}

        async def look() -> None:
            saved = await asyncio.to_thread(self._position.load)
            begins, ends = await self._log.begin_offsets(COMMANDS), await self._log.end_offsets(COMMANDS)
            # A position outside is that of a topic that was made anew, or older than the topic remembers.
            positions.update({p: saved[p] if begins[p] <= saved.get(p, -1) <= ends[p] else begins[p] for p in begins})

        await with_backoff(look, self._clock, what="commands topic", retry_s=RETRY_S)
        return positions

    async def _save(self, progress: _Progress) -> None:
        saved: dict[int, int] = {}
        while True:
            await self._clock.sleep(SAVE_EVERY_S)
            if (done := progress.done_before()) != saved:
                try:
                    await asyncio.to_thread(self._position.save, done)
                    saved = done
                except Unavailable as error:
                    log.info("position not saved", extra={"error": str(error)})


def _decoded(record: Record) -> Request | None:
    try:
        return decode_request(record.value)
    except CorruptRecord as error:
        where = {"topic": record.topic, "partition": record.partition, "offset": record.offset, "why": str(error)}
        log.warning("poison record passed over", extra=where)
        return None
