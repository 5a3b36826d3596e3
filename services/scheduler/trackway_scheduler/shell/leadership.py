"""Active or standby: safety is the claims alone, heartbeats only say when to claim.

A scheduler is active while it holds every partition of the runs topic. One that reads a foreign claim stands by at
once; a standby that hears no active scheduler for a moment claims everything.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from trackway_common.acceptance import Claimed, partition_scope
from trackway_common.clock import Clock
from trackway_common.errors import Fenced, TrackwayError, Unavailable
from trackway_common.events import OwnershipClaimed, SchedulerHeartbeat
from trackway_common.fact_reader import Judged
from trackway_common.request_sender import RequestSender
from trackway_common.stream_owner import Writer
from trackway_common.topics import FACT_PARTITIONS

from trackway_scheduler.shell.fleet import Fleet
from trackway_scheduler.shell.records import Owner

log = logging.getLogger(__name__)

HEARTBEAT_S = 0.5
TICK_S = 0.1
MISSING_GRACE_S = 2.0
"""A scope that is lost for longer, and that nobody else claimed, was lost to an uncertain append: claim it again."""
SCOPES = tuple(partition_scope(partition) for partition in range(FACT_PARTITIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipTerms:
    """When a standby takes over."""

    takeover_after_s: float
    """Log time without an active scheduler's heartbeat."""
    rivals_wait_s: float = 1.0
    """Longest random wait after a claim that another one crossed."""


class _Outcome(Enum):
    HELD = "every partition is held"
    CROSSED = "another scheduler claimed too"
    AWAY = "the log did not acknowledge"


class Leadership:
    """Claims, watches foreign claims, and tells whether this scheduler may act."""

    def __init__(
        self,
        *,
        owner: Owner,
        fleet: Fleet,
        sender: RequestSender,
        writer: Writer,
        clock: Clock,
        terms: LeadershipTerms,
        chance: Callable[[], float],
        on_change: Callable[[bool], Awaitable[None]],
    ) -> None:
        self._owner = owner
        self._fleet = fleet
        self._sender = sender
        self._writer = writer
        self._clock = clock
        self._terms = terms
        self._chance = chance
        self._on_change = on_change
        self._missing_since: float | None = None
        self._rival = ""
        self._rival_at_log_s = 0.0
        self.active = False

    def take(self, judged: Judged) -> None:
        """Notice a foreign claim; called with every record of the runs topic after it was folded."""
        if not isinstance(judged.verdict, Claimed) or judged.commit.writer_id == self._writer.writer_id:
            return
        if self._owner.caught_up.is_set() and self.active:
            log.warning("another scheduler took over", extra={"writer": judged.commit.writer_id})
        self.active = False
        (fact,) = judged.commit.facts
        self._rival = fact.endpoint if isinstance(fact, OwnershipClaimed) else ""
        self._rival_at_log_s = self._fleet.log_s()

    def require_active(self) -> None:
        """Raise Unavailable with the active scheduler's endpoint when this one stands by."""
        if self.active:
            return
        other = self._fleet.other_scheduler()
        endpoint = other.heartbeat.endpoint if other else self._rival
        where = f"; the active one is at {endpoint}" if endpoint else "; none is active yet"
        raise Unavailable(f"this scheduler stands by{where}: ask again in a moment")

    async def run(self) -> None:
        """Stand by, lead, stand by again, for ever; belongs in the service's task group."""
        await self._owner.caught_up.wait()
        while True:
            await self._stand_by()
            await self._on_change(True)
            log.info("active", extra={"writer": self._writer.writer_id})
            await self._lead()
            await self._on_change(False)
            log.info("standing by", extra={"writer": self._writer.writer_id})

    async def beat(self) -> None:
        """Tell standbys that this one is active, for ever."""
        heartbeat = SchedulerHeartbeat(writer_id=self._writer.writer_id, endpoint=self._writer.endpoint)
        while True:
            if self.active:
                try:
                    await self._sender.send(heartbeat, key=self._writer.writer_id)
                except Unavailable as error:
                    log.info("heartbeat not sent", extra={"error": str(error)})
            await self._clock.sleep(HEARTBEAT_S)

    async def _stand_by(self) -> None:
        while not self.active:
            await self._clock.sleep(TICK_S)
            if self._silence_s() < self._terms.takeover_after_s:
                continue
            self.active = await self._claim(SCOPES) is _Outcome.HELD
            if not self.active:
                await self._clock.sleep(self._chance() * self._terms.rivals_wait_s)

    async def _lead(self) -> None:
        while self.active:
            await self._clock.sleep(TICK_S)
            missing = tuple(scope for scope in SCOPES if not self._owner.holds(scope))
            if not missing:
                self._missing_since = None
            elif self._is_overdue() and await self._claim(missing) is _Outcome.CROSSED:
                self.active = False

    def _silence_s(self) -> float:
        """Since another scheduler's last heartbeat or claim: who just claimed has had no time to beat yet."""
        return min(self._fleet.other_silence_s(), self._fleet.log_s() - self._rival_at_log_s)

    def _is_overdue(self) -> bool:
        now = self._clock.monotonic()
        if self._missing_since is None:
            self._missing_since = now
        return now - self._missing_since >= MISSING_GRACE_S

    async def _claim(self, scopes: tuple[str, ...]) -> _Outcome:
        """Claim the scopes side by side."""
        results = await asyncio.gather(*(self._owner.claim(scope) for scope in scopes), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, TrackwayError):
                raise result
        if all(self._owner.holds(scope) for scope in SCOPES):
            return _Outcome.HELD
        outcome = _Outcome.CROSSED if any(isinstance(result, Fenced) for result in results) else _Outcome.AWAY
        errors = sorted({str(result) for result in results if isinstance(result, TrackwayError)})
        log.info("not every partition is claimed", extra={"outcome": outcome.value, "errors": errors})
        return outcome
