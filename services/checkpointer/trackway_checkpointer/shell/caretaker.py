"""Looks after runs without being asked: publishes what nobody announced, frees what retention gave up."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from functools import partial

from trackway_common.checkpoint.collect import Collected, reclaim
from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.retention import next_due_ms
from trackway_common.clock import Clock
from trackway_common.errors import CommandRejected, CorruptLog, Unavailable
from trackway_common.service import with_backoff

from trackway_checkpointer.shell.publisher import Publisher
from trackway_checkpointer.shell.run_logs import RunLogs

log = logging.getLogger(__name__)

AWAY_S = 1.0
"""Between two tries while the log or the store does not answer."""
RETRY_S = 5.0
"""Before a run is looked after again whose storage did not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How soon things are done."""

    grace_ms: int
    """Between a tombstone and the end of the bytes."""
    sweep_s: float
    """Between two looks at every run of the store."""


class Caretaker:
    """Keeps every run of the store in order."""

    def __init__(self, logs: RunLogs, publisher: Publisher, pace: Pace, clock: Clock) -> None:
        self._logs = logs
        self._publisher = publisher
        self._pace = pace
        self._clock = clock
        self._due: dict[str, float] = {}
        self._woken = asyncio.Event()
        self.all_published = asyncio.Event()
        """Set once every entry that was in the store at the start is in the topic."""

    def watch(self, run_id: str) -> None:
        """Look after this run now: something was appended to its log."""
        self._due[run_id] = self._clock.monotonic()
        self._woken.set()

    async def run(self) -> None:
        """Work for ever."""
        await self._publisher.caught_up.wait()
        await with_backoff(self._publish_all, self._clock, what="checkpoint store and log", retry_s=AWAY_S)
        self.all_published.set()
        for run_id in await self._logs.run_ids():
            self.watch(run_id)
        next_sweep = self._clock.monotonic() + self._pace.sweep_s
        while True:
            await self._care_for_due()
            if self._clock.monotonic() >= next_sweep:
                await with_backoff(self._publish_all, self._clock, what="checkpoint store and log", retry_s=AWAY_S)
                next_sweep = self._clock.monotonic() + self._pace.sweep_s
            await self._wait(next_sweep)

    async def _publish_all(self) -> None:
        for run_id in await self._logs.run_ids():
            try:
                if await self._publisher.publish(run_id):
                    self.watch(run_id)
            except CorruptLog as error:
                log.error(
                    "run left alone: its commit log can't be believed", extra={"run_id": run_id, "error": str(error)}
                )

    async def _care_for_due(self) -> None:
        now = self._clock.monotonic()
        for run_id in [run_id for run_id, due in self._due.items() if due <= now]:
            del self._due[run_id]
            await self._care_for(run_id)

    async def _care_for(self, run_id: str) -> None:
        try:
            collected, due_ms = await self._logs.call(run_id, partial(_reclaim, grace_ms=self._pace.grace_ms))
            await self._publisher.publish(run_id)
        except Unavailable as error:
            log.info("waiting", extra={"for": "storage", "run_id": run_id, "error": str(error)})
            self._due.setdefault(run_id, self._clock.monotonic() + RETRY_S)
        except (CommandRejected, CorruptLog) as error:
            log.error("run left alone: its checkpoints need a person", extra={"run_id": run_id, "error": str(error)})
        else:
            if collected != Collected():
                log.info(
                    "checkpoints freed",
                    extra={"run_id": run_id, "deleted_slots": collected.deleted, "dropped": collected.dropped},
                )
            if due_ms is not None:
                self._due.setdefault(run_id, self._clock.monotonic() + self._seconds_until(due_ms))

    def _seconds_until(self, due_ms: int) -> float:
        return max(0.0, due_ms / 1000 - self._clock.now().timestamp())

    async def _wait(self, next_sweep: float) -> None:
        until = min([next_sweep, *self._due.values()])
        sleeping = asyncio.ensure_future(self._clock.sleep(max(0.0, until - self._clock.monotonic())))
        woken = asyncio.ensure_future(self._woken.wait())
        try:
            await asyncio.wait({sleeping, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            woken.cancel()
        self._woken.clear()


def _reclaim(run_log: CommitLog, *, grace_ms: int) -> tuple[Collected, int | None]:
    collected = reclaim(run_log, grace_ms=grace_ms)
    return collected, next_due_ms(run_log.refresh(), grace_ms)
