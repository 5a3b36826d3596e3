"""A gang at work: watched, recorded, stopped in time, and cleared away once its saves are over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from trackway_common.errors import Unavailable

from trackway_trainer_agent.domain.commands import AbandonCheckpoint, StopAttempt
from trackway_trainer_agent.domain.observations import ClusterLost, Observation, RankLost, RankSilent
from trackway_trainer_agent.domain.orders import StopOrder
from trackway_trainer_agent.domain.saves import Save
from trackway_trainer_agent.gangs import Gangs, RankGone
from trackway_trainer_agent.shell.attempt_desk import AttemptDesk
from trackway_trainer_agent.shell.bring_up import Granted, patiently, start
from trackway_trainer_agent.shell.cluster_pulse import ClusterPulse
from trackway_trainer_agent.shell.commit_desk import Committed
from trackway_trainer_agent.shell.gang_watch import GangWatch
from trackway_trainer_agent.shell.hang_watch import HangWatch
from trackway_trainer_agent.shell.recorder import Recorder
from trackway_trainer_agent.shell.reflexes import Reflexes
from trackway_trainer_agent.shell.testimony import Testimony

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.02


class LiveGang:
    """Of one attempt. Its background tasks belong to the task group that it is given."""

    def __init__(self, desk: AttemptDesk, gangs: Gangs, pulse: ClusterPulse, granted: Granted) -> None:
        self._desk = desk
        self._gangs = gangs
        self._granted = granted
        self._reflexes = Reflexes(gangs, granted.watched.gang, len(granted.watched.hosts), desk.timing, desk.clock)
        self._hangs = HangWatch(gangs, granted.watched, desk.blobs, desk.clock)
        self._recorder = Recorder(desk, granted.watched, self._reflexes, self._hangs, granted.at)
        self._watch = GangWatch(gangs, granted.watched, pulse, self._recorder, desk.timing, desk.clock)
        self._following: asyncio.Task[None] | None = None

    @property
    def testimony(self) -> Testimony:
        """What the ranks said so far."""
        return self._recorder.testimony

    def begin(self, tasks: asyncio.TaskGroup) -> None:
        """Start the ranks that are to be started, and follow all of them."""
        gang, clock, retry_s = self._granted.watched.gang, self._desk.clock, self._desk.timing.retry_s
        for spec in self._granted.specs:
            tasks.create_task(start(self._gangs, gang, spec, clock, retry_s), name=f"start rank {spec.rank}")
        self._following = tasks.create_task(self._watch.run(), name="watch gang")

    async def end_hang(self) -> None:
        """Wait until no rank gets on any more; then keep where they stand, and stop them."""
        hang = await self._hangs.hung()
        if not self._reflexes.quiet:
            return
        self.testimony.observations.append(hang)
        self._reflexes.stop_hung()
        why = f"no rank made progress for {hang.limit_s:g} s"
        await self._desk.execute(StopAttempt(why=why, at=self._desk.clock.now()), "stopping")

    def stop(self, order: StopOrder) -> None:
        """Have the ranks stop."""
        self._reflexes.order_stop(order)

    async def observations(self) -> list[Observation]:
        """Wait until the attempt is over and settled; everything that was seen of its end."""
        silent = await self._reflexes.run()
        await self._recorder.heard(set(range(len(self._granted.watched.hosts))) - set(silent))
        at_ms = int(self._desk.clock.now().timestamp() * 1000)
        seen = [*self.testimony.observations, *(RankSilent(rank=rank, at_ms=at_ms) for rank in silent)]
        for rank in silent:
            await self._kill(rank)
        return seen if self._reflexes.intent is None else [self._reflexes.intent, *seen]

    async def open_saves(self, limit_s: float) -> tuple[str, ...]:
        """Nonces of what may still become a checkpoint, after giving them a moment."""
        await self._until(lambda: not self._recorder.book.in_flight, limit_s)
        awaited: Iterable[Save] = self._recorder.book.complete
        try:
            awaited = self._awaited(await self._desk.commits.committed())
        except Unavailable as error:
            log.info("commit log not read", extra={"error": str(error)})
        return (*self._recorder.book.in_flight, *(save.nonce for save in awaited))

    async def settle(self) -> None:
        """Let captures be saved and committed, within their limits; nothing is followed any more then."""
        assert self._following is not None
        following, timing = self._following, self._desk.timing
        await self._until(lambda: following.done() or not self._recorder.book.in_flight, timing.captures_deadline_s)
        await self._until(following.done, timing.saves_before_end_s)
        await self._recorder.give_up_saves("its attempt is over")
        await self._commit_rest()
        following.cancel()

    @property
    def idle(self) -> bool:
        """Every actor lives, and has told that its program and its saves are over."""
        lost = any(isinstance(seen, RankLost | ClusterLost) for seen in self.testimony.observations)
        return self._following is not None and self._following.done() and not self._following.cancelled() and not lost

    async def _commit_rest(self) -> None:
        """Give the checkpointer its time for what it has not answered; what it refused is given up."""
        commits, clock, timing = self._desk.commits, self._desk.clock, self._desk.timing
        await commits.sent()
        awaited = self._awaited(await patiently(commits.committed, clock, timing.retry_s))
        await commits.wait_committed(frozenset(save.nonce for save in awaited), timing.commit_limit_s)
        committed = await patiently(commits.committed, clock, timing.retry_s)
        for save in self._recorder.book.complete:
            if save.nonce not in committed.nonces:
                why = "its receipts were there, but the checkpointer did not commit it"
                command = AbandonCheckpoint(step=save.step, nonce=save.nonce, why=why, at=clock.now())
                await self._desk.execute(command, f"abandoned/{save.nonce}")

    def _awaited(self, committed: Committed) -> tuple[Save, ...]:
        """Complete saves that the checkpointer may still commit: it takes a run's in their order."""
        newest = committed.newest
        last = newest.step if newest is not None and newest.epoch == self._desk.state.epoch else 0
        saves = self._recorder.book.complete
        return tuple(save for save in saves if save.nonce not in committed.nonces and save.step > last)

    async def _kill(self, rank: int) -> None:
        try:
            await self._gangs.kill(self._granted.watched.gang, rank)
        except (RankGone, Unavailable) as error:
            log.info("rank not killed", extra={"rank": rank, "error": str(error)})

    async def _until(self, true: Callable[[], bool], limit_s: float) -> None:
        deadline = self._desk.clock.monotonic() + limit_s
        while not true() and self._desk.clock.monotonic() < deadline:
            await self._desk.clock.sleep(LOOK_EVERY_S)
