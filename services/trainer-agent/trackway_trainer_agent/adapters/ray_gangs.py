"""Gangs on a Ray cluster: named, detached actors in detached placement groups. Lives in the driver process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayError, RayTaskError
from ray.util.placement_group import PlacementGroup
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from trackway_common.errors import TrackwayError, Unavailable

from trackway_trainer_agent.adapters import ray_cluster
from trackway_trainer_agent.adapters.ray_deaths import cause_of_death
from trackway_trainer_agent.gangs import ClusterView, GangName, GangRequest, NotGranted, PlacementFailed, RankGone
from trackway_trainer_agent.worker.rank_actor import RankActor
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import DrainBatch, RankDescription, StackDump

log = logging.getLogger(__name__)

ACTOR_START_LIMIT_S = 120.0
"""First actor on a node: an interpreter starts, on a busy machine."""
CALL_LIMIT_S = 20.0
"""Ray itself gives up on an unreachable actor after about 8 s."""
CLOSE_LIMIT_S = 5.0
"""For an actor to remove its folder; then it is killed."""


class RayGangs:
    """``Gangs`` of the cluster that this process joined."""

    def __init__(self, *, peer: str) -> None:
        self._peer = peer
        self._actor_class = ray.remote(RankActor)
        self._actors: dict[tuple[GangName, int], Any] = {}

    async def cluster(self) -> ClusterView:
        return await asyncio.to_thread(ray_cluster.view)

    async def existing(self) -> Mapping[GangName, frozenset[int]]:
        return await asyncio.to_thread(ray_cluster.existing)

    async def create(self, request: GangRequest) -> tuple[RankDescription, ...]:
        await self.remove(request.name)
        try:
            group = await asyncio.to_thread(ray_cluster.place, request)
            actors = [self._make_actor(request, group, rank) for rank in range(len(request.bundles))]
            async with asyncio.timeout(ACTOR_START_LIMIT_S):
                return tuple(await asyncio.gather(*(_described(actor) for actor in actors)))
        except NotGranted:
            await self.remove(request.name)
            raise
        except (RayError, ValueError, TimeoutError) as error:
            await self.remove(request.name)
            raise PlacementFailed(str(error) or "the actors did not start in time") from error

    async def renew(self, gang: GangName, rank: int) -> RankDescription:
        described: RankDescription = await self._ask(gang, rank, "renew")
        return described

    async def start(self, gang: GangName, rank: int, spec: RankSpec) -> None:
        await self._ask(gang, rank, "start", spec)

    async def drain(self, gang: GangName, rank: int, after: int) -> DrainBatch:
        batch: DrainBatch = await self._ask(gang, rank, "drain", after)
        return batch

    async def stacks(self, gang: GangName, rank: int) -> StackDump:
        dump: StackDump = await self._ask(gang, rank, "stacks")
        return dump

    async def stop(self, gang: GangName, rank: int, grace_s: float) -> None:
        await self._ask(gang, rank, "stop", grace_s)

    async def kill(self, gang: GangName, rank: int) -> None:
        await self._ask(gang, rank, "kill")

    async def remove(self, gang: GangName) -> None:
        living = (await self.existing()).get(gang, frozenset())
        await asyncio.gather(*(self._remove_actor(gang, rank) for rank in living))
        for known in [known for known in self._actors if known[0] == gang]:
            del self._actors[known]
        await asyncio.to_thread(ray_cluster.remove_group, gang)

    def _make_actor(self, request: GangRequest, group: PlacementGroup, rank: int) -> Any:
        bundle = request.bundles[rank]
        strategy = PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=rank)
        actor = self._actor_class.options(
            name=request.name.actor(rank),
            lifetime="detached",
            num_cpus=bundle.cpus,
            num_gpus=bundle.accelerators,
            memory=bundle.memory_bytes or None,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=strategy,
        ).remote(peer=self._peer)
        self._actors[request.name, rank] = actor
        return actor

    async def _ask(self, gang: GangName, rank: int, method: str, *arguments: object) -> Any:
        actor = await self._actor(gang, rank)
        try:
            async with asyncio.timeout(CALL_LIMIT_S):
                return await getattr(actor, method).remote(*arguments)
        except RayTaskError as error:
            # The actor lives and refused: its own error says why.
            cause = error.cause
            raise cause if isinstance(cause, TrackwayError) else Unavailable(f"rank {rank}: {cause!r}") from error
        except ActorDiedError as error:
            raise await self._gone(gang, rank, str(error)) from error
        except (ActorUnavailableError, TimeoutError) as error:
            raise Unavailable(f"rank {rank} does not answer: {error}") from error

    async def _actor(self, gang: GangName, rank: int) -> Any:
        if (known := self._actors.get((gang, rank))) is not None:
            return known
        found = await asyncio.to_thread(ray_cluster.find_actor, gang, rank)
        if found is None:
            raise await self._gone(gang, rank, "no living actor has the rank's name")
        self._actors[gang, rank] = found
        return found

    async def _gone(self, gang: GangName, rank: int, said: str) -> RankGone:
        record = await asyncio.to_thread(ray_cluster.death_record, gang, rank)
        return RankGone(rank, cause_of_death(record + said), record or said)

    async def _remove_actor(self, gang: GangName, rank: int) -> None:
        try:
            actor = await self._actor(gang, rank)
        except RankGone:
            return
        try:
            async with asyncio.timeout(CLOSE_LIMIT_S):
                await actor.close.remote()
        except (RayError, TimeoutError) as error:
            # It is killed next, whatever kept it from closing.
            log.info("actor did not close", extra={"gang": str(gang), "rank": rank, "error": repr(error)})
        await asyncio.to_thread(ray.kill, actor)


async def _described(actor: Any) -> RankDescription:
    described: RankDescription = await actor.describe.remote()
    return described
