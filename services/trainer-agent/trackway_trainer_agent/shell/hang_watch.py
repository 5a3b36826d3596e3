"""Notices that no rank gets anywhere any more, and finds out where each of them stands."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from trackway_common.clock import Clock
from trackway_common.errors import TrackwayError, Unavailable
from trackway_common.object_store import BlobStore

from trackway_trainer_agent.domain.observations import Hang, StuckRank
from trackway_trainer_agent.domain.stack_text import main_frames
from trackway_trainer_agent.gangs import Gangs
from trackway_trainer_agent.shell.gang_watch import Watched
from trackway_trainer_agent.shell.keeping import put_soon
from trackway_trainer_agent.worker.records import DrainBatch, Overdue, RankPhase, StackDump

log = logging.getLogger(__name__)

STACKS_LIMIT_S = 15.0
"""For all ranks; they are asked side by side, and each gives its trainer 3 s."""


class HangWatch:
    """Of one live gang. A rank's own actor says when it is overdue; the gang hangs when every one that runs is."""

    def __init__(self, gangs: Gangs, watched: Watched, blobs: BlobStore, clock: Clock) -> None:
        self._gangs = gangs
        self._watched = watched
        self._blobs = blobs
        self._clock = clock
        self._running: set[int] = set(range(len(watched.hosts)))
        self._overdue: dict[int, Overdue] = {}
        self._steps: dict[int, int] = {}
        self._hung = asyncio.Event()

    def note(self, rank: int, batch: DrainBatch) -> None:
        """Take in what a rank's actor says of its progress."""
        self._steps[rank] = batch.last_step
        if batch.phase in {RankPhase.SAVING, RankPhase.ENDED}:
            self.over(rank)
        elif batch.overdue is not None:
            self._overdue[rank] = batch.overdue
        else:
            self._overdue.pop(rank, None)
        if self._all_overdue:
            self._hung.set()

    def over(self, rank: int) -> None:
        """Nothing is expected of this rank any more."""
        self._running.discard(rank)
        self._overdue.pop(rank, None)

    async def hung(self) -> Hang:
        """Wait until every rank that runs is overdue, and still is after a look at where each of them stands."""
        while True:
            await self._hung.wait()
            at_ms = int(self._clock.now().timestamp() * 1000)
            log.warning(
                "no rank makes progress", extra={"gang": str(self._watched.gang), "ranks": sorted(self._overdue)}
            )
            looks = [self._look(rank, seen) for rank, seen in sorted(self._overdue.items())]
            stuck = await asyncio.gather(*looks)
            if self._all_overdue:
                return self._hang(stuck, at_ms)
            # Taking stacks takes seconds, in which a rank moved on or ended.
            log.info("ranks make progress again", extra={"gang": str(self._watched.gang)})
            self._hung.clear()

    @property
    def _all_overdue(self) -> bool:
        return bool(self._running) and self._running <= self._overdue.keys()

    def _hang(self, stuck: Sequence[StuckRank], at_ms: int) -> Hang:
        overdue = self._overdue
        return Hang(
            ranks=tuple(one for one in stuck if one.rank in overdue),
            limit_s=min(seen.limit_s for seen in overdue.values()),
            stepped=any(seen.stepped for seen in overdue.values()),
            at_ms=at_ms,
        )

    async def _look(self, rank: int, seen: Overdue) -> StuckRank:
        dump = await self._stacks(rank)
        return StuckRank(
            rank=rank,
            node=self._watched.hosts[rank],
            last_step=self._steps.get(rank, 0),
            silent_s=seen.silent_s,
            frames=main_frames(dump.text),
            stacks_source=dump.source,
            stacks_digest=await self._keep(dump),
        )

    async def _stacks(self, rank: int) -> StackDump:
        try:
            async with asyncio.timeout(STACKS_LIMIT_S):
                return await self._gangs.stacks(self._watched.gang, rank)
        except (TrackwayError, TimeoutError) as error:
            log.info("no stacks", extra={"rank": rank, "error": str(error)})
            return StackDump(source="none", text="")

    async def _keep(self, dump: StackDump) -> str | None:
        if not dump.text:
            return None
        try:
            return await put_soon(self._blobs, dump.text.encode())
        except Unavailable as error:
            log.info("stacks not kept", extra={"error": str(error)})
            return None
