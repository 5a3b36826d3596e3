"""Open commit logs, one user at a time each, with what was read of them kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.layout import ROOT
from trackway_common.clock import Clock
from trackway_common.object_store import ObjectStore

T = TypeVar("T")

MAX_OPEN = 512
"""Folded logs that are kept; a few hundred kilobytes each at worst, and read again when needed."""


@dataclass(slots=True)
class _Open:
    log: CommitLog
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class RunLogs:
    """Runs blocking work on runs' commit logs in threads."""

    def __init__(self, store: ObjectStore, writer: str, clock: Clock) -> None:
        self.store = store
        self._writer = writer
        self._clock = clock
        self._open: OrderedDict[str, _Open] = OrderedDict()

    async def call(self, run_id: str, work: Callable[[CommitLog], T]) -> T:
        """Run the work on the run's log once nobody else does; raises what it raises.

        A caller that is cancelled leaves the work to its end: a thread can't be stopped, and nobody may enter before.
        """
        return await asyncio.shield(asyncio.ensure_future(self._locked(run_id, work)))

    async def run_ids(self) -> list[str]:
        """Every run that has checkpoints in the store."""
        names = await asyncio.to_thread(self.store.names, ROOT)
        return [name.rstrip("/") for name in names if name.endswith("/")]

    async def _locked(self, run_id: str, work: Callable[[CommitLog], T]) -> T:
        opened = self._opened(run_id)
        async with opened.lock:
            return await asyncio.to_thread(work, opened.log)

    def _opened(self, run_id: str) -> _Open:
        if run_id not in self._open:
            self._forget_idle()
            log = CommitLog(self.store, run_id, writer=self._writer, now_ms=self._now_ms)
            self._open[run_id] = _Open(log)
        self._open.move_to_end(run_id)
        return self._open[run_id]

    def _forget_idle(self) -> None:
        idle = [run_id for run_id, opened in self._open.items() if not opened.lock.locked()]
        for run_id in idle[: max(0, len(self._open) - MAX_OPEN + 1)]:
            del self._open[run_id]

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)
