"""Which queued runs start now: first come, first served, all ranks at once or none.

Strict order within a pool: a run that waits for capacity keeps later ones waiting, so that a large gang can't
starve. Runs in backoff, and gangs larger than the whole pool is at the moment, let others pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from trackway_common.events import RankPlacement

from trackway_scheduler.domain.catalogue import NOTHING, Capacity


class WaitToken(StrEnum):
    """Why a queued run waits. Kueue's words where it has one."""

    BACKOFF = "WaitingForBackoff"
    AGENT = "WaitingForAgent"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    CAPACITY = "WaitingForQuota"
    TURN = "WaitingForTurn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A queued run and what its gang needs."""

    run_id: str
    attempt: int
    pool: str
    ranks: int
    per_rank: Capacity
    submitted_at: datetime
    """Its age: a retry keeps its place."""
    not_before: datetime
    smaller: tuple[int, ...] = ()
    """Ranks of smaller gangs that will do in the end, largest first."""
    smaller_after_s: float = 0.0
    """How long the whole gang is waited for, from ``not_before`` on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A pool's agent that is heard from, and what it has in all."""

    pool: str
    agent_id: str
    total: Capacity
    used: Capacity = NOTHING
    """By live attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A whole gang's placement."""

    run_id: str
    attempt: int
    pool: str
    agent_id: str
    ranks: tuple[RankPlacement, ...]
    shortfall: str = ""
    """Why it is a smaller gang; empty for a whole one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Why a run is not placed yet."""

    run_id: str
    token: WaitToken
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the queue looks like after one pass."""

    grants: tuple[Grant, ...]
    waits: tuple[Wait, ...]


def plan(waiting: Iterable[Waiting], clusters: Sequence[Cluster], now: datetime) -> Plan:
    """Place every gang whose turn it is and that fits as a whole."""
    free = {cluster.pool: _Free(cluster) for cluster in clusters}
    grants: list[Grant] = []
    waits: list[Wait] = []
    for run in sorted(waiting, key=lambda run: (run.submitted_at, run.run_id)):
        outcome = _try(run, free.get(run.pool), now)
        if isinstance(outcome, Grant):
            grants.append(outcome)
        else:
            waits.append(outcome)
    return Plan(grants=tuple(grants), waits=tuple(waits))


class _Free:
    """What one pass has left of a pool."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.left = cluster.total.minus(cluster.used)
        self.head: str | None = None
        """The run that everyone behind it waits for."""


def _try(run: Waiting, free: _Free | None, now: datetime) -> Grant | Wait:
    if now < run.not_before:
        return _wait(run, WaitToken.BACKOFF, f"starts again not before {run.not_before:%H:%M:%S} UTC")
    if free is None:
        return _wait(run, WaitToken.AGENT, f"no agent of pool {run.pool} is heard from")
    if free.head is None and (small := _smaller(run, free, now)) is not None:
        free.left = free.left.minus(run.per_rank.times(small))
        waited = f"{run.ranks} ranks were not to be had within {run.smaller_after_s:g} s"
        return _grant(replace(run, ranks=small), free.cluster, shortfall=waited)
    need = run.per_rank.times(run.ranks)
    if not free.cluster.total.holds(run.per_rank.times(_least(run, now))):
        message = f"pool {run.pool} holds {free.cluster.total.fits(run.per_rank)} such ranks now; it needs {run.ranks}"
        message += _smaller_later(run)
        return _wait(run, WaitToken.NO_MATCHING_FLAVOR, message)
    if free.head is not None:
        return _wait(run, WaitToken.TURN, f"behind run {free.head} on pool {run.pool}")
    if not free.left.holds(need):
        free.head = run.run_id
        message = f"needs {run.ranks} ranks on pool {run.pool}; room for {free.left.fits(run.per_rank)} now"
        message += _smaller_later(run)
        return _wait(run, WaitToken.CAPACITY, message)
    free.left = free.left.minus(need)
    return _grant(run, free.cluster)


def _smaller(run: Waiting, free: _Free, now: datetime) -> int | None:
    """Ranks of the largest smaller gang that fits, once the whole one was waited for in vain."""
    if free.left.holds(run.per_rank.times(run.ranks)) or _least(run, now) == run.ranks:
        return None
    return next((ranks for ranks in run.smaller if free.left.holds(run.per_rank.times(ranks))), None)


def _least(run: Waiting, now: datetime) -> int:
    """Ranks that will do now."""
    waited = (now - run.not_before).total_seconds() >= run.smaller_after_s
    return run.smaller[-1] if run.smaller and waited else run.ranks


def _smaller_later(run: Waiting) -> str:
    """From when on fewer ranks will do, for those who ask why the run waits."""
    if not run.smaller:
        return ""
    after = run.not_before + timedelta(seconds=run.smaller_after_s)
    return f"; from {after:%H:%M:%S} UTC on {run.smaller[-1]} will do"


def _grant(run: Waiting, cluster: Cluster, shortfall: str = "") -> Grant:
    ranks = tuple(
        RankPlacement(
            rank=rank,
            bundle=rank,
            cpus=run.per_rank.cpus,
            accelerators=run.per_rank.accelerators,
            memory_bytes=run.per_rank.memory_bytes,
        )
        for rank in range(run.ranks)
    )
    return Grant(
        run_id=run.run_id,
        attempt=run.attempt,
        pool=run.pool,
        agent_id=cluster.agent_id,
        ranks=ranks,
        shortfall=shortfall,
    )


def _wait(run: Waiting, token: WaitToken, message: str) -> Wait:
    return Wait(run_id=run.run_id, token=token, message=message)
