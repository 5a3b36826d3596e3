"""The queue as the placement plan sees it: who waits, and which clusters have room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trackway_common.events import AgentHeartbeat, RunPhase, RunQueued, RunSpec

from trackway_scheduler.domain.catalogue import NOTHING, Capacity, need_of
from trackway_scheduler.domain.gang_sizes import smaller_gangs
from trackway_scheduler.domain.placement import Cluster, Wait, Waiting
from trackway_scheduler.domain.remedies import base_shape
from trackway_scheduler.domain.state import RunState
from trackway_scheduler.shell.fleet import Fleet

FRESH_S = 5.0
"""An agent that was silent for longer gets nothing new."""


@dataclass(slots=True)
class QueueBoard:
    """What the last pass found, for those who ask why a run waits."""

    waits: Mapping[str, Wait] = field(default_factory=dict)


def waiting_runs(runs: Iterable[RunState]) -> tuple[Waiting, ...]:
    """Queued runs and what their gangs need."""
    return tuple(
        _waiting(run, run.spec, run.queued, run.submitted_at)
        for run in runs
        if run.phase is RunPhase.QUEUED and run.spec and run.queued and run.submitted_at
    )


def _waiting(run: RunState, spec: RunSpec, queued: RunQueued, submitted_at: datetime) -> Waiting:
    shape = base_shape(run, spec)
    return Waiting(
        run_id=run.run_id,
        attempt=queued.attempt,
        pool=shape.compute.pool,
        ranks=shape.world_size,
        per_rank=need_of(shape.compute),
        submitted_at=submitted_at,
        not_before=queued.not_before,
        smaller=smaller_gangs(shape.world_size, spec.topology.min_world_size),
        smaller_after_s=spec.topology.world_size_wait_s,
    )


def clusters(fleet: Fleet, runs: Iterable[RunState], known: Mapping[str, str]) -> tuple[Cluster, ...]:
    """One cluster per pool that is heard from, with what live attempts use of it.

    Args:
        known: pool → agent that it was last observed with; it goes on to speak for the pool while it is heard.
    """
    used = used_by_agent(runs)
    return tuple(
        Cluster(
            pool=agent.pool,
            agent_id=agent.agent_id,
            total=Capacity(cpus=agent.cpus, accelerators=agent.accelerators, memory_bytes=agent.memory_bytes),
            used=used.get(agent.agent_id, NOTHING),
        )
        for agent in speakers(fleet, known).values()
    )


def speakers(fleet: Fleet, known: Mapping[str, str]) -> dict[str, AgentHeartbeat]:
    """The agent that speaks for each pool: the known one while it is heard, else the last heard."""
    fresh = [seen for seen in fleet.agents() if fleet.agent_silence_s(seen.heartbeat.agent_id) <= FRESH_S]
    fresh.sort(key=lambda seen: (known.get(seen.heartbeat.pool) == seen.heartbeat.agent_id, seen.at_log_s))
    return {seen.heartbeat.pool: seen.heartbeat for seen in fresh}


def used_by_agent(runs: Iterable[RunState]) -> dict[str, Capacity]:
    """What live attempts were given, by agent."""
    used: defaultdict[str, Capacity] = defaultdict(lambda: NOTHING)
    for run in runs:
        if run.phase is RunPhase.RUNNING and run.placed:
            used[run.placed.agent_id] = used[run.placed.agent_id].plus(_given(run))
    return dict(used)


def _given(run: RunState) -> Capacity:
    assert run.placed is not None
    return Capacity(
        cpus=sum(rank.cpus for rank in run.placed.ranks),
        accelerators=sum(rank.accelerators for rank in run.placed.ranks),
        memory_bytes=sum(rank.memory_bytes for rank in run.placed.ranks),
    )
