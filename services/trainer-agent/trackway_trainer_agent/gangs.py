"""The cluster as a port: gangs of rank actors that outlive whoever made them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from trackway_common.errors import TrackwayError

from trackway_trainer_agent.domain.observations import SubstrateCause
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import DrainBatch, RankDescription, StackDump

_ACTOR = re.compile(r"trackway-(.+)-(\d+)-r\d+")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class GangName:
    """All ranks of one attempt, named by the first that ran there."""

    run_id: str
    attempt: int

    def __str__(self) -> str:
        return f"trackway-{self.run_id}-{self.attempt}"

    def actor(self, rank: int) -> str:
        """Name of a rank's actor."""
        return f"{self}-r{rank}"

    @staticmethod
    def of_actor(name: str) -> GangName:
        """The gang of an actor by its name; raises ``ValueError``."""
        if (match := _ACTOR.fullmatch(name)) is None:
            raise ValueError(f"{name!r} is no rank's actor")
        return GangName(run_id=match[1], attempt=int(match[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Resources of one rank."""

    cpus: float
    accelerators: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRequest:
    """A gang to make; ``bundles[rank]`` is what that rank gets, all of them or none."""

    name: GangName
    bundles: tuple[Bundle, ...]
    wait_s: float
    """How long the cluster may take to grant them."""
    excluded_nodes: tuple[str, ...] = ()
    """Nodes that no bundle may lie on, by id or host name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """The cluster as it is now."""

    cluster_id: str
    """Changes when the cluster's head is started anew: nothing that was placed before is there then."""
    cpus: float
    accelerators: int
    memory_bytes: int
    nodes: tuple[str, ...]
    """Ids of those that live."""
    largest_node_memory_bytes: int = 0
    """Memory of the living node that has most; 0 where that is not known."""
    leaving: tuple[str, ...] = ()
    """Ids of those that are to be taken away although somebody uses them: a spot notice."""


class PlacementFailed(TrackwayError):
    """The cluster did not grant the gang's resources; nothing of it is left there."""


class NotGranted(PlacementFailed):
    """The cluster had no room for the gang in time."""


class RankGone(TrackwayError):
    """The rank's actor is dead; nothing can be asked of it any more."""

    def __init__(self, rank: int, cause: SubstrateCause, text: str) -> None:
        super().__init__(rank, cause, text)
        self.rank = rank
        self.cause = cause
        self.text = text
        """The cluster's own words."""


class Gangs(Protocol):
    """Every method waits on the cluster, and raises ``Unavailable`` while the cluster can't be reached.

    Actors are named and detached: what one process made, another finds. Success of ``start``, ``stop`` and
    ``kill`` says that the actor heard it; what came of it is told by ``drain``.
    """

    async def cluster(self) -> ClusterView:
        """The cluster as it is now."""
        ...

    async def existing(self) -> Mapping[GangName, frozenset[int]]:
        """Gangs of which anything is left, with the ranks whose actors live."""
        ...

    async def create(self, request: GangRequest) -> tuple[RankDescription, ...]:
        """Place the gang and start its actors; where each rank landed, in their order.

        Raises:
            NotGranted: the resources were not to be had in time.
            PlacementFailed: an actor did not start.
        """
        ...

    async def renew(self, gang: GangName, rank: int) -> RankDescription:
        """Have the rank's actor forget a program that is over and be as new; one that is new stays as it is.

        Raises:
            RankGone: its actor is dead; so do the other calls to a rank.
            CommandRejected: its program, or a save of it, is not over.
        """
        ...

    async def start(self, gang: GangName, rank: int, spec: RankSpec) -> None:
        """Have the rank's program started; the same spec again changes nothing.

        Raises:
            RankGone: its actor is dead; so do the other calls to a rank.
            CommandRejected: the actor was started with another spec.
        """
        ...

    async def drain(self, gang: GangName, rank: int, after: int) -> DrainBatch:
        """Records behind the cursor; 0 reads all facts again."""
        ...

    async def stacks(self, gang: GangName, rank: int) -> StackDump:
        """Where the rank's program is right now; takes it up to 3 s to say."""
        ...

    async def stop(self, gang: GangName, rank: int, grace_s: float) -> None:
        """Ask the rank's program to end, and kill it after the grace."""
        ...

    async def kill(self, gang: GangName, rank: int) -> None:
        """Kill the rank's program; what it captured is still saved."""
        ...

    async def remove(self, gang: GangName) -> None:
        """Kill what is left of the gang and give its resources back; nothing left is no error."""
        ...
