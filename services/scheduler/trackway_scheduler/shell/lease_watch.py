"""Watches the agents that run attempts; gives up those that are really gone."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable

from trackway_common.clock import Clock
from trackway_common.events import AgentHeartbeat, RunPhase, TerminationReason

from trackway_scheduler.domain.commands import AttemptEnd, WriteOffAttempt
from trackway_scheduler.domain.leases import LeaseMove, LeaseTerms, Probe, evidence, judge
from trackway_scheduler.domain.outside import Outside, last_committed
from trackway_scheduler.domain.reactions import Moment
from trackway_scheduler.domain.state import RunState
from trackway_scheduler.shell.fleet import Fleet

log = logging.getLogger(__name__)

PROBE_EVERY_S = 5.0

Prober = Callable[[str], Awaitable[Probe]]
"""Asks an endpoint whether anything answers there."""


class LeaseWatch:
    """Holds the last probe of each silent agent; probes run beside the passes."""

    def __init__(self, fleet: Fleet, clock: Clock, terms: LeaseTerms, prober: Prober) -> None:
        self._fleet = fleet
        self._clock = clock
        self._terms = terms
        self._prober = prober
        self._probes: dict[str, Probe] = {}
        self._wanted = asyncio.Event()
        self._silent: frozenset[str] = frozenset()

    async def run(self) -> None:
        """Probe silent agents, again and again; belongs in the service's task group."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            for agent_id in sorted(self._silent):
                self._probes[agent_id] = await self._probe(agent_id)
                log.info("silent agent probed", extra={"agent": agent_id, "found": self._probes[agent_id].detail})
            await self._clock.sleep(PROBE_EVERY_S)

    def overdue(self, runs: Iterable[RunState]) -> tuple[RunState, ...]:
        """Runs whose attempt is to be written off now; asks for probes of silent agents on the way."""
        by_agent: defaultdict[str, list[RunState]] = defaultdict(list)
        for run in runs:
            if run.phase is RunPhase.RUNNING and run.placed is not None:
                by_agent[run.placed.agent_id].append(run)
        moves = {agent_id: self._judge(agent_id) for agent_id in by_agent}
        self._silent = frozenset(agent_id for agent_id, move in moves.items() if move is not LeaseMove.TRUST)
        self._probes = {agent_id: probe for agent_id, probe in self._probes.items() if agent_id in self._silent}
        if self._silent:
            self._wanted.set()
        lost = [agent_id for agent_id, move in moves.items() if move is LeaseMove.WRITE_OFF]
        return tuple(run for agent_id in sorted(lost) for run in by_agent[agent_id])

    def write_off(self, run: RunState, outside: Outside, moment: Moment) -> WriteOffAttempt:
        """The command that gives up a run's attempt."""
        assert run.placed is not None
        agent_id = run.placed.agent_id
        end = AttemptEnd(
            attempt=run.attempt,
            reason=TerminationReason.AGENT_LOST,
            cause=f"Agent {agent_id} went silent and could not be reached.",
            last_committed=last_committed(outside, run.last_committed),
            jitter=moment.jitter,
            at=moment.at,
            room=moment.room(run),
        )
        silence_s = self._fleet.agent_silence_s(agent_id)
        return WriteOffAttempt(end=end, evidence=evidence(agent_id, silence_s, self._probes[agent_id]))

    def _judge(self, agent_id: str) -> LeaseMove:
        return judge(self._terms, self._fleet.agent_silence_s(agent_id), self._probes.get(agent_id))

    async def _probe(self, agent_id: str) -> Probe:
        seen = self._fleet.agent(agent_id)
        if seen is None:
            return Probe(endpoint="", reachable=False, detail="not heard from since this scheduler started")
        endpoint = seen.heartbeat.endpoint
        successor = next((other for other in self._fleet.agents() if _replaces(other.heartbeat, seen.heartbeat)), None)
        if successor is not None and successor.at_log_s > seen.at_log_s:
            detail = f"agent {successor.heartbeat.agent_id} answers there now"
            return Probe(endpoint=endpoint, reachable=False, detail=detail)
        return await self._prober(endpoint)


def _replaces(other: AgentHeartbeat, agent: AgentHeartbeat) -> bool:
    return other.agent_id != agent.agent_id and other.endpoint == agent.endpoint
