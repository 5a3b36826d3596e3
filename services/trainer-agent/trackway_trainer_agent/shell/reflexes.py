"""What is done at once when a rank dies or a stop is ordered, before the log has heard of it."""

from __future__ import annotations

import asyncio
import logging
from typing import assert_never

from trackway_common.clock import Clock
from trackway_common.errors import CommandRejected, Unavailable

from trackway_trainer_agent.domain.observations import StopOrdered
from trackway_trainer_agent.domain.orders import StopOrder
from trackway_trainer_agent.domain.settling import (
    Close,
    KeepWatching,
    StopSurvivors,
    Window,
    next_move,
    rank_ended,
    stop_ordered,
    survivors_stopped,
)
from trackway_trainer_agent.gangs import GangName, Gangs, RankGone
from trackway_trainer_agent.shell.timing import Timing

log = logging.getLogger(__name__)


class Reflexes:
    """Of one live gang."""

    def __init__(self, gangs: Gangs, gang: GangName, world_size: int, timing: Timing, clock: Clock) -> None:
        self._gangs = gangs
        self._gang = gang
        self._timing = timing
        self._clock = clock
        self._window = Window(world_size=world_size)
        self._changed = asyncio.Event()
        self._ordered: StopOrder | None = None
        self._hung = False
        self.intent: StopOrdered | None = None
        """The order that ranks were stopped for; absent when it came after all had ended."""

    def rank_ended(self, rank: int, *, failed: bool) -> None:
        """A rank's end is known."""
        self._window = rank_ended(self._window, rank, failed=failed, now_s=self._clock.monotonic())
        self._changed.set()

    def order_stop(self, order: StopOrder) -> None:
        """Have all ranks stop, for this reason."""
        self._ordered = self._ordered or order
        self._changed.set()

    @property
    def quiet(self) -> bool:
        """Nothing has ended and nothing was ordered."""
        return self._ordered is None and self._window.opened_at is None

    def stop_hung(self) -> None:
        """Have all ranks stop that don't get on; nobody ordered it, so it is no reason of its own."""
        self._hung = True
        self._changed.set()

    async def run(self) -> tuple[int, ...]:
        """Act until the settle window closes; returns the ranks that gave no terminal record."""
        while True:
            if self._ordered is not None and self.intent is None and self._window.survivors:
                await self._stop_all(self._ordered)
            elif self._hung and not self._window.stopped and self._window.survivors:
                await self._stop_survivors(self._timing.survivor_grace_s)
            move = next_move(self._window, now_s=self._clock.monotonic())
            match move:
                case Close():
                    return move.silent
                case StopSurvivors():
                    await self._stop(move.ranks, self._timing.survivor_grace_s)
                    self._window = survivors_stopped(self._window)
                case KeepWatching():
                    await self._wait(move.until_s)
                case _ as never:
                    assert_never(never)

    async def _stop_all(self, order: StopOrder) -> None:
        self.intent = StopOrdered(reason=order.reason, why=order.why, at_ms=self._now_ms())
        await self._stop_survivors(self._timing.stop_grace_s)

    async def _stop_survivors(self, grace_s: float) -> None:
        await self._stop(self._window.survivors, grace_s)
        self._window = stop_ordered(self._window, now_s=self._clock.monotonic(), grace_s=grace_s)

    async def _stop(self, ranks: tuple[int, ...], grace_s: float) -> None:
        log.info("ranks told to stop", extra={"gang": str(self._gang), "ranks": list(ranks)})
        await asyncio.gather(*(self._stop_rank(rank, grace_s) for rank in ranks))

    async def _stop_rank(self, rank: int, grace_s: float) -> None:
        try:
            await self._gangs.stop(self._gang, rank, grace_s)
        except (RankGone, CommandRejected, Unavailable) as error:
            # Its end is told by whoever drains it; the window closes without it if need be.
            log.info("rank not told to stop", extra={"gang": str(self._gang), "rank": rank, "error": str(error)})

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    async def _wait(self, until_s: float | None) -> None:
        if until_s is None:
            await self._changed.wait()
        else:
            changed = asyncio.ensure_future(self._changed.wait())
            due = asyncio.ensure_future(self._clock.sleep(max(0.0, until_s - self._clock.monotonic())))
            try:
                await asyncio.wait({changed, due}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
                due.cancel()
        self._changed.clear()
