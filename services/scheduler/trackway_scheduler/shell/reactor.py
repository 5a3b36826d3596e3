"""Passes over the live runs: what others reported, what is lost, what pools offer, who starts next."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from trackway_common.clock import Clock
from trackway_common.commit import CommandContext
from trackway_common.errors import CommandRejected, CorruptLog, Fenced, Unavailable
from trackway_common.ids import run_stream
from trackway_common.telemetry import span

from trackway_scheduler.domain.commands import PlaceAttempt, RunCommand
from trackway_scheduler.domain.outside import captures_before
from trackway_scheduler.domain.placement import Grant, plan
from trackway_scheduler.domain.reactions import Moment, Reaction, react
from trackway_scheduler.domain.state import RunState
from trackway_scheduler.shell.lease_watch import LeaseWatch
from trackway_scheduler.shell.outside_view import OutsideView
from trackway_scheduler.shell.pool_watch import PoolWatch
from trackway_scheduler.shell.queue import QueueBoard, clusters, waiting_runs
from trackway_scheduler.shell.records import Records
from trackway_scheduler.shell.waking import Waker

log = logging.getLogger(__name__)

ACTOR = "scheduler"
TICK_S = 0.25
"""Backoffs and leases end at this grain; everything else wakes the reactor at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactorParts:
    """What a pass looks at."""

    records: Records
    outside: OutsideView
    pools: PoolWatch
    leases: LeaseWatch
    board: QueueBoard


class Reactor:
    """Performs what is due while this scheduler is active."""

    def __init__(
        self, parts: ReactorParts, clock: Clock, chance: Callable[[], float], is_active: Callable[[], bool]
    ) -> None:
        self._parts = parts
        self._clock = clock
        self._chance = chance
        self._is_active = is_active
        self._halted: set[str] = set()
        self.waker = Waker(clock)

    async def run(self) -> None:
        """Make passes for ever; belongs in the service's task group."""
        while True:
            await self.waker.wait(TICK_S)
            if not self._is_active():
                continue
            try:
                await self.make_pass()
            except (Unavailable, Fenced) as error:
                log.info("pass cut short", extra={"error": str(error)})

    async def make_pass(self) -> None:
        """Do everything that is due now; raises Unavailable or Fenced when the log or the claim is gone."""
        await self._parts.pools.observe()
        for run in self._live():
            reaction = react(run, self._parts.outside.of(run.run_id), self._moment())
            if reaction is not None:
                await self._perform_reaction(run, reaction)
        for run in self._parts.leases.overdue(self._live()):
            command = self._parts.leases.write_off(run, self._parts.outside.of(run.run_id), self._moment())
            await self._perform(run.run_id, command, f"write-off/{run.attempt}")
        await self._place()

    async def _place(self) -> None:
        runs = self._live()
        cluster_list = clusters(self._parts.pools.fleet, runs, self._parts.pools.known_agents())
        made = plan(waiting_runs(runs), cluster_list, self._clock.now())
        self._parts.board.waits = {wait.run_id: wait for wait in made.waits}
        for grant in made.grants:
            await self._perform(grant.run_id, self._placement(grant), f"place/{grant.attempt}")

    def _placement(self, grant: Grant) -> PlaceAttempt:
        captures = captures_before(self._parts.outside.of(grant.run_id), grant.attempt)
        return PlaceAttempt(
            attempt=grant.attempt,
            pool=grant.pool,
            agent_id=grant.agent_id,
            ranks=grant.ranks,
            captures_in_flight=captures,
            shortfall=grant.shortfall,
            at=self._clock.now(),
        )

    async def _perform_reaction(self, run: RunState, reaction: Reaction) -> None:
        cause = reaction.cause
        await self._perform(
            run.run_id, reaction.command, reaction.command_id, causation_id=cause.commit_id, trace=cause.traceparent
        )

    async def _perform(
        self, run_id: str, command: RunCommand, command_id: str, *, causation_id: str = "", trace: str = ""
    ) -> None:
        """Execute one command in the run's trace; a run that can't be decided on is left to people."""
        causation_id = causation_id or self._parts.records.newest_commit(run_id)
        context = CommandContext(command_id=command_id, actor=ACTOR, causation_id=causation_id, correlation_id=run_id)
        name = f"scheduler.{type(command).__name__}"
        with span(name, traceparent=trace or self._parts.records.traceparent(run_id), run_id=run_id):
            try:
                await self._parts.records.perform(run_stream(run_id), command, context)
            except (CorruptLog, CommandRejected) as error:
                self._halted.add(run_id)
                log.error("run halted: it can't be decided on", extra={"run_id": run_id, "error": str(error)})

    def _live(self) -> tuple[RunState, ...]:
        return tuple(run for run in self._parts.records.live_runs() if run.run_id not in self._halted)

    def _moment(self) -> Moment:
        return Moment(at=self._clock.now(), jitter=self._chance(), rooms=self._parts.pools.rooms())
