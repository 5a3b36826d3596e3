"""From a placement to a gang whose ranks are told what to run."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from trackway_common.clock import Clock
from trackway_common.errors import Unavailable

from trackway_trainer_agent.domain.observations import LaunchProblem, LaunchStage
from trackway_trainer_agent.gangs import GangName, Gangs, PlacementFailed, RankGone
from trackway_trainer_agent.shell.attempt_desk import AttemptDesk
from trackway_trainer_agent.shell.cluster_pulse import ClusterPulse
from trackway_trainer_agent.shell.gang_watch import Watched
from trackway_trainer_agent.shell.plan import gang_request, rank_specs
from trackway_trainer_agent.worker.rank_spec import RankSpec

log = logging.getLogger(__name__)

T = TypeVar("T")


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
    state = desk.state
    if state.started_at is None:
        return None
    hosts = tuple(rank.node for rank in sorted(state.ranks, key=lambda rank: rank.rank))
    watched = Watched(gang=desk.assignment.gang, cluster_id=state.cluster_id, hosts=hosts)
    return Granted(watched=watched, at=state.started_at)


async def place(desk: AttemptDesk, gangs: Gangs, pulse: ClusterPulse, store_url: str) -> Granted:
    """Make the gang; what an agent before this one left half-made is removed first.

    Raises:
        LaunchFailed: with the evidence.
    """
    request = gang_request(desk.assignment, desk.timing.placement_wait_s)
    try:
        landed = await patiently(lambda: gangs.create(request), desk.clock, desk.timing.retry_s)
    except PlacementFailed as error:
        raise LaunchFailed(_not_placed(desk, str(error))) from error
    await pulse.ask()
    hosts = tuple(rank.host for rank in landed)
    cluster_id = pulse.view.cluster_id if pulse.view is not None else ""
    log.info("gang placed", extra={"gang": str(request.name), "hosts": list(hosts)})
    return Granted(
        watched=Watched(gang=request.name, cluster_id=cluster_id, hosts=hosts),
        at=desk.clock.now(),
        specs=rank_specs(
            desk.assignment,
            landed,
            resume=desk.state.resume,
            store_url=store_url,
            attempt_token=secrets.token_hex(8),
        ),
    )


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


def _not_placed(desk: AttemptDesk, message: str) -> LaunchProblem:
    at_ms = int(desk.clock.now().timestamp() * 1000)
    return LaunchProblem(stage=LaunchStage.PLACE, message=message, at_ms=at_ms)
