"""From a placement to a gang whose ranks are told what to run."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeAlias, TypeVar

from trackway_common.clock import Clock
from trackway_common.errors import CommandRejected, Unavailable
from trackway_common.events import TerminationReason

from trackway_trainer_agent.domain.attempt import AttemptState
from trackway_trainer_agent.domain.observations import LaunchProblem, LaunchStage
from trackway_trainer_agent.gangs import GangName, GangRequest, Gangs, NotGranted, PlacementFailed, RankGone
from trackway_trainer_agent.shell.attempt_desk import AttemptDesk
from trackway_trainer_agent.shell.cluster_pulse import ClusterPulse
from trackway_trainer_agent.shell.gang_watch import Watched
from trackway_trainer_agent.shell.plan import gang_request, rank_specs
from trackway_trainer_agent.shell.warm_gangs import WarmGangs
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import RankDescription

log = logging.getLogger(__name__)

T = TypeVar("T")
Landed: TypeAlias = tuple[RankDescription, ...]
RENEW_LIMIT_S = 20.0
"""For actors that are up to make themselves new; then others are made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """A gang that stands; its ranks were told to start, or are still to be told."""

    watched: Watched
    at: datetime
    """When the cluster granted it."""
    specs: tuple[RankSpec, ...] = ()
    """Of the ranks to tell; empty for a gang that was found running."""


class LaunchFailed(Exception):
    """No gang stands, and nothing of one is left."""

    def __init__(self, problem: LaunchProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def found(desk: AttemptDesk) -> Granted | None:
    """The gang that an agent before this one started, as the log tells of it; whether it lives is another matter."""
    state, gang = desk.state, gang_of(desk.state)
    if state.started_at is None or gang is None:
        return None
    hosts = tuple(rank.node for rank in sorted(state.ranks, key=lambda rank: rank.rank))
    watched = Watched(gang=gang, cluster_id=state.cluster_id, hosts=hosts)
    return Granted(watched=watched, at=state.started_at)


def gang_of(state: AttemptState) -> GangName | None:
    """The gang that the attempt runs in, its own or one that it took over; None before its start."""
    return GangName.of_actor(state.ranks[0].actor) if state.ranks else None


async def place(desk: AttemptDesk, gangs: Gangs, warm: WarmGangs, pulse: ClusterPulse, store_url: str) -> Granted:
    """Take over the gang of the attempt before, or make one.

    Raises:
        LaunchFailed: with the evidence.
    """
    request = gang_request(desk.assignment, desk.timing.placement_wait_s)
    name, landed = await _renewed(desk, gangs, warm, pulse, request) or await _made(desk, gangs, warm, request)
    await pulse.ask()
    hosts = tuple(rank.host for rank in landed)
    cluster_id = pulse.view.cluster_id if pulse.view is not None else ""
    log.info("gang placed", extra={"gang": str(name), "hosts": list(hosts)})
    return Granted(
        watched=Watched(gang=name, cluster_id=cluster_id, hosts=hosts, nodes=tuple(rank.node for rank in landed)),
        at=desk.clock.now(),
        specs=rank_specs(
            desk.assignment,
            landed,
            resume=desk.state.resume,
            store_url=store_url,
            attempt_token=secrets.token_hex(8),
        ),
    )


async def remove(desk: AttemptDesk, gangs: Gangs, warm: WarmGangs, gang: GangName) -> None:
    """Give a gang back, however long the cluster is away."""
    await patiently(lambda: gangs.remove(gang), desk.clock, desk.timing.retry_s)
    warm.removed(gang)


async def _renewed(
    desk: AttemptDesk, gangs: Gangs, warm: WarmGangs, pulse: ClusterPulse, request: GangRequest
) -> tuple[GangName, Landed] | None:
    """The gang of the attempt before, every actor as new; None where there is none that can be used."""
    kept = await warm.take(request)
    if kept is None:
        return None
    name, clock, retry_s = kept.request.name, desk.clock, desk.timing.retry_s
    try:
        async with asyncio.timeout(RENEW_LIMIT_S), asyncio.TaskGroup() as tasks:
            asked = [
                tasks.create_task(patiently(partial(gangs.renew, name, rank), clock, retry_s))
                for rank in range(len(request.bundles))
            ]
    except* (RankGone, CommandRejected, TimeoutError) as error:
        log.info("gang not taken over", extra={"gang": str(name), "why": str(error.exceptions[0])})
        asked = []
    if asked and pulse.view is not None and pulse.view.cluster_id == kept.cluster_id:
        return name, tuple(task.result() for task in asked)
    await remove(desk, gangs, warm, name)
    return None


async def _made(desk: AttemptDesk, gangs: Gangs, warm: WarmGangs, request: GangRequest) -> tuple[GangName, Landed]:
    """A new gang. What is left of the run's attempts before is removed first: this one's fence is up."""
    clock, retry_s = desk.clock, desk.timing.retry_s
    with warm.making_room():
        for left in await patiently(gangs.existing, clock, retry_s):
            if left.run_id == request.name.run_id and left.attempt < request.name.attempt:
                await remove(desk, gangs, warm, left)
        try:
            return request.name, await patiently(lambda: gangs.create(request), clock, retry_s)
        except PlacementFailed as error:
            raise LaunchFailed(_not_placed(desk, error)) from error


async def start(gangs: Gangs, gang: GangName, spec: RankSpec, clock: Clock, retry_s: float) -> None:
    """Have one rank's program started; whoever drains a dead actor hears of its death there."""
    try:
        await patiently(lambda: gangs.start(gang, spec.rank, spec), clock, retry_s)
    except RankGone as gone:
        log.warning("rank gone before its start", extra={"gang": str(gang), "rank": spec.rank, "said": gone.text})


async def patiently(ask: Callable[[], Awaitable[T]], clock: Clock, retry_s: float) -> T:
    """The answer, however long whoever gives it is away."""
    waiting = False
    while True:
        try:
            return await ask()
        except Unavailable as error:
            if not waiting:
                log.info("waiting", extra={"error": str(error)})
            waiting = True
            await clock.sleep(retry_s)


def _not_placed(desk: AttemptDesk, error: PlacementFailed) -> LaunchProblem:
    """Missing capacity is no failure of anything: the run goes back to the queue."""
    at_ms = int(desk.clock.now().timestamp() * 1000)
    reason = TerminationReason.CAPACITY_TIMEOUT if isinstance(error, NotGranted) else None
    return LaunchProblem(stage=LaunchStage.PLACE, message=str(error), at_ms=at_ms, reason=reason)
