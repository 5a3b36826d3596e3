"""Follows the ranks of one gang: drains each of them until nothing more can come."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Protocol

from trackway_common.clock import Clock
from trackway_common.errors import Unavailable

from trackway_trainer_agent.domain.observations import ClusterLost, NodeLeaving, RankLost, SubstrateCause
from trackway_trainer_agent.gangs import GangName, Gangs, RankGone
from trackway_trainer_agent.shell.cluster_pulse import ClusterPulse
from trackway_trainer_agent.shell.timing import Timing
from trackway_trainer_agent.worker.records import DrainBatch, RankPhase

log = logging.getLogger(__name__)


class Listener(Protocol):
    """Who is told; the next question to a rank waits until the listener is done with its answer."""

    async def drained(self, rank: int, batch: DrainBatch) -> None:
        """A rank answered."""
        ...

    async def rank_lost(self, seen: RankLost) -> None:
        """A rank's actor is dead; nothing more comes from it."""
        ...

    async def node_leaving(self, seen: NodeLeaving) -> None:
        """The cluster announced that it takes a node with ranks away; told once for each node."""
        ...

    async def cluster_lost(self, seen: ClusterLost) -> None:
        """The cluster is gone with every rank; told once."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A gang, and where it was placed."""

    gang: GangName
    cluster_id: str
    hosts: tuple[str, ...]
    """By rank."""
    nodes: tuple[str, ...] = ()
    """The cluster's ids of these, by rank; empty where a gang was found running."""


class GangWatch:
    """One task per rank."""

    def __init__(
        self, gangs: Gangs, watched: Watched, pulse: ClusterPulse, listener: Listener, timing: Timing, clock: Clock
    ) -> None:
        self._gangs = gangs
        self._watched = watched
        self._pulse = pulse
        self._listener = listener
        self._timing = timing
        self._clock = clock
        self._cluster_lost = False
        self._left: set[str] = set()
        """Nodes whose leaving was told of."""

    async def run(self) -> None:
        """Follow every rank to its end."""
        async with asyncio.TaskGroup() as tasks:
            for rank in range(len(self._watched.hosts)):
                tasks.create_task(self._follow(rank), name=f"follow rank {rank}")

    async def _follow(self, rank: int) -> None:
        cursor, silent = 0, False
        while not await self._is_cluster_lost():
            try:
                batch = await self._gangs.drain(self._watched.gang, rank, cursor)
            except RankGone as gone:
                await self._lost(gone)
                return
            except Unavailable as error:
                if not silent:
                    where = {"gang": str(self._watched.gang), "rank": rank}
                    log.info("rank not drained", extra=where | {"error": str(error)})
                silent = True
                await self._clock.sleep(self._timing.retry_s)
                continue
            await self._look_for_notice()
            await self._listener.drained(rank, batch)
            cursor, silent = batch.cursor, False
            if batch.phase is RankPhase.ENDED and not batch.more:
                return
            if not batch.more:
                await self._clock.sleep(self._timing.drain_every_s)

    async def _look_for_notice(self) -> None:
        view = self._pulse.view
        for node in set(view.leaving if view is not None else ()) & (set(self._watched.nodes) - self._left):
            self._left.add(node)
            ranks = tuple(rank for rank, of in enumerate(self._watched.nodes) if of == node)
            seen = NodeLeaving(
                node=self._watched.hosts[ranks[0]],
                cause=SubstrateCause.PREEMPTED,
                text=f"Ray drains node {node}, which is in use: it will be preempted",
                at_ms=self._now_ms(),
                ranks=ranks,
            )
            await self._listener.node_leaving(seen)

    async def _lost(self, gone: RankGone) -> None:
        # On a new cluster no actor has the rank's name either: that is another end.
        await self._pulse.ask()
        if await self._is_cluster_lost():
            return
        seen = RankLost(
            rank=gone.rank,
            node=self._watched.hosts[gone.rank],
            cause=gone.cause,
            text=gone.text,
            at_ms=self._now_ms(),
        )
        await self._listener.rank_lost(seen)

    async def _is_cluster_lost(self) -> bool:
        if not self._cluster_lost and await self._pulse.lost(self._watched.cluster_id, self._timing.cluster_silent_s):
            self._cluster_lost = True
            await self._listener.cluster_lost(self._cluster_evidence())
        return self._cluster_lost

    def _cluster_evidence(self) -> ClusterLost:
        view, silent_s = self._pulse.view, self._pulse.silent_s
        found = view.cluster_id if view is not None and silent_s < self._timing.cluster_silent_s else None
        return ClusterLost(
            expected_id=self._watched.cluster_id, found_id=found, silent_s=silent_s, at_ms=self._now_ms()
        )

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)
