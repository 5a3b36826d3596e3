"""Turns agents' heartbeats into facts about pools, whenever something changed."""

from __future__ import annotations

from trackway_common.clock import Clock
from trackway_common.commit import CommandContext
from trackway_common.events import AgentHeartbeat
from trackway_common.ids import IdSource, pool_stream

from trackway_scheduler.domain.catalogue import Capacity, Catalogue, offers
from trackway_scheduler.domain.commands import ObservePool
from trackway_scheduler.domain.ladder import Room
from trackway_scheduler.domain.registry import observe_pool
from trackway_scheduler.domain.state import PoolState
from trackway_scheduler.shell.fleet import Fleet
from trackway_scheduler.shell.queue import speakers
from trackway_scheduler.shell.records import Records


class PoolWatch:
    """Observes each pool through the agent that speaks for it."""

    def __init__(self, records: Records, fleet: Fleet, catalogue: Catalogue, clock: Clock, ids: IdSource) -> None:
        self._records = records
        self.fleet = fleet
        self._catalogue = catalogue
        self._clock = clock
        self._ids = ids

    def known_agents(self) -> dict[str, str]:
        """Pool → agent that it was last observed with."""
        return {name: observed.agent_id for name, observed in self._records.pools().items()}

    def rooms(self) -> dict[str, Room]:
        """Pool → what it has, by its agent's last word while it is heard, else as it was last observed."""
        heard = speakers(self.fleet, self.known_agents())
        known = self._records.pools()
        return {
            pool: _room(heard[pool])
            if pool in heard and _offers_anything(heard[pool])
            else Room(memory_bytes=known[pool].memory_bytes)
            for pool in {*known, *(pool for pool in heard if _offers_anything(heard[pool]))}
        }

    async def observe(self) -> None:
        """Record what changed since the last pass; raises as ``Records.perform``."""
        for pool, agent in speakers(self.fleet, self.known_agents()).items():
            if not _offers_anything(agent):
                continue
            command = self._command(agent)
            if observe_pool(self._records.pool(pool) or PoolState(pool=pool), command):
                context = CommandContext(command_id=self._ids(), actor=agent.agent_id)
                await self._records.perform(pool_stream(pool), command, context)

    def _command(self, agent: AgentHeartbeat) -> ObservePool:
        capacity = Capacity(cpus=agent.cpus, accelerators=agent.accelerators, memory_bytes=agent.memory_bytes)
        return ObservePool(
            agent_id=agent.agent_id,
            cluster_id=agent.cluster_id,
            cpus=agent.cpus,
            accelerators=agent.accelerators,
            memory_bytes=agent.memory_bytes,
            environment_digest=agent.environment_digest,
            python_version=agent.python_version,
            offers=offers(self._catalogue, agent.pool, capacity),
            at=self._clock.now(),
        )


def _room(agent: AgentHeartbeat) -> Room:
    return Room(
        memory_bytes=agent.memory_bytes,
        nodes=agent.nodes,
        largest_node_memory_bytes=agent.largest_node_memory_bytes,
    )


def _offers_anything(agent: AgentHeartbeat) -> bool:
    """A cluster that can't be reached for a moment offers nothing; its pool is what it was, and runs wait for it."""
    return agent.cpus > 0 or agent.accelerators > 0
