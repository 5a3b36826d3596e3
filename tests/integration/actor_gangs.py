"""An agent over real rank actors and real trainers, in this process: no Ray, no broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from trackway_common import events as e
from trackway_common.canonical import Json, canonical_json, digest
from trackway_common.clock import SystemClock
from trackway_common.event_log import InMemoryEventLog
from trackway_common.object_store import BlobStore, open_store
from trackway_common.testing.run_facts import RUN_ID, run_spec
from trackway_trainer_agent.domain.observations import SubstrateCause
from trackway_trainer_agent.gangs import ClusterView, GangName, GangRequest, RankGone
from trackway_trainer_agent.worker.rank_actor import RankActor
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import DrainBatch, RankDescription, StackDump

from tests.integration.rank_harness import code_archive
from tests.unit.trainer_agent.world import World

T = TypeVar("T")


class ActorGangs:
    """``Gangs`` whose actors live here."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self.actors: dict[GangName, list[RankActor]] = {}

    async def cluster(self) -> ClusterView:
        return ClusterView(cluster_id="here", cpus=8.0, accelerators=0, memory_bytes=1 << 34, nodes=("here",))

    async def existing(self) -> Mapping[GangName, frozenset[int]]:
        return {gang: frozenset(range(len(actors))) for gang, actors in self.actors.items()}

    async def create(self, request: GangRequest) -> tuple[RankDescription, ...]:
        made = [RankActor(scratch=str(self._scratch)) for _ in request.bundles]
        self.actors[request.name] = made
        return tuple([await asyncio.to_thread(actor.describe) for actor in made])

    async def renew(self, gang: GangName, rank: int) -> RankDescription:
        return await self._ask(gang, rank, lambda actor: actor.renew())

    async def start(self, gang: GangName, rank: int, spec: RankSpec) -> None:
        await self._ask(gang, rank, lambda actor: actor.start(spec))

    async def drain(self, gang: GangName, rank: int, after: int) -> DrainBatch:
        return await self._ask(gang, rank, lambda actor: actor.drain(after))

    async def stacks(self, gang: GangName, rank: int) -> StackDump:
        return await self._ask(gang, rank, lambda actor: actor.stacks())

    async def stop(self, gang: GangName, rank: int, grace_s: float) -> None:
        await self._ask(gang, rank, lambda actor: actor.stop(grace_s))

    async def kill(self, gang: GangName, rank: int) -> None:
        await self._ask(gang, rank, lambda actor: actor.kill())

    async def remove(self, gang: GangName) -> None:
        for actor in self.actors.pop(gang, []):
            await asyncio.to_thread(actor.close)

    async def _ask(self, gang: GangName, rank: int, question: Callable[[RankActor], T]) -> T:
        if gang not in self.actors:
            raise RankGone(rank, SubstrateCause.UNEXPLAINED, "no such actor")
        return await asyncio.to_thread(question, self.actors[gang][rank])


class RealWorld(World):
    """A world whose ranks are processes and whose time passes by itself."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "spool")
        self.clock = SystemClock()
        self.log = InMemoryEventLog(self.clock)
        self.store_url = (folder / "objects").as_uri()
        self.store = open_store(self.store_url)
        self.gangs = ActorGangs(folder / "scratch")
        self.limit_s = 90.0

    async def run(
        self,
        files: Mapping[str, str],
        *,
        world_size: int = 1,
        hyperparameters: Mapping[str, Json] | None = None,
        argv: tuple[str, ...] = ("train.py",),
        **changes: object,
    ) -> None:
        """Submit a run of this code and place its first attempt."""
        spec = run_spec(
            entrypoint=e.Entrypoint(kind=e.EntrypointKind.SCRIPT, argv=argv),
            code=e.CodeRef(archive_digest=BlobStore(self.store).put(code_archive(files))),
            datasets=(),
            hyperparameters_json=canonical_json(hyperparameters or {}).decode(),
            config_digest=digest(hyperparameters or {}),
        )
        submitted = e.RunSubmitted(run_id=RUN_ID, spec=replace(spec, **changes), submitted_at=self.clock.now())
        await self.order(submitted)
        await self.place(world_size=world_size, submit=False)

    async def _run_clock(self) -> None:
        await asyncio.Event().wait()
