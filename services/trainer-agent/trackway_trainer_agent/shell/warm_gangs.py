"""Gangs whose attempt is over and whose actors all live, kept a while: the next attempt starts without new ones.

Only the agent's memory knows of them. One that dies with its agent is removed by the next agent's sweep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from trackway_common.clock import Clock
from trackway_common.events import FailureDomain, NextMove
from trackway_common.reasons import policy_of

from trackway_trainer_agent.domain.classify import Classification
from trackway_trainer_agent.gangs import GangName, GangRequest

T = TypeVar("T")
KEEP_S = 60.0
"""After its attempt's end nobody waits longer for the next one."""
READY_LIMIT_S = 5.0
"""How long the next attempt waits for the last saves of the one before, once its fence is up."""
_INNOCENT = frozenset({FailureDomain.WORKLOAD, FailureDomain.DATA, FailureDomain.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A gang that nothing runs in."""

    request: GangRequest
    """As if it were made anew, under the name that its actors have."""
    cluster_id: str


class _Offer:
    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.kept: asyncio.Future[Kept | None] = loop.create_future()
        """Set once it is known whether the gang can be used again."""
        self.taken: asyncio.Future[bool] = loop.create_future()

    def withdraw(self) -> None:
        if not self.kept.done():
            self.kept.set_result(None)
        if not self.taken.done():
            self.taken.set_result(False)


class WarmGangs:
    """At most one per run."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offers: dict[str, _Offer] = {}
        self._in_use: dict[str, GangName] = {}
        self._wanted = 0

    @contextmanager
    def offering(self, run_id: str) -> Iterator[None]:
        """Open before an attempt's end is known to anybody: the next attempt waits for what becomes of the gang."""
        offer = self._offers[run_id] = _Offer()
        try:
            yield
        finally:
            offer.withdraw()
            if self._offers.get(run_id) is offer:
                del self._offers[run_id]

    async def was_taken(self, kept: Kept) -> bool:
        """Keep a gang for the run's next attempt; false once nobody will take it."""
        offer = self._offers[kept.request.name.run_id]
        if self._wanted or offer.kept.done():
            return False
        offer.kept.set_result(kept)
        await self._patiently(offer.taken, KEEP_S)
        offer.withdraw()
        return offer.taken.result()

    async def take(self, request: GangRequest) -> Kept | None:
        """The gang that the run's attempt before left, if it is what is asked for now; it is the caller's then."""
        run_id = request.name.run_id
        offer = self._offers.get(run_id)
        if offer is None:
            return None
        await self._patiently(offer.kept, READY_LIMIT_S)
        kept = offer.kept.result() if offer.kept.done() else None
        if kept is None or replace(request, name=kept.request.name) != kept.request or offer.taken.done():
            offer.withdraw()
            return None
        offer.taken.set_result(True)
        self._in_use[run_id] = kept.request.name
        return kept

    async def _patiently(self, told: asyncio.Future[T], limit_s: float) -> None:
        over = asyncio.create_task(self._clock.sleep(limit_s))
        told.add_done_callback(lambda _told: over.cancel())
        try:
            await asyncio.wait({over})
        finally:
            over.cancel()

    def withdraw(self, run_id: str) -> None:
        """No attempt of the run follows soon."""
        if (offer := self._offers.get(run_id)) is not None:
            offer.withdraw()

    @contextmanager
    def making_room(self) -> Iterator[None]:
        """While a new gang is asked for nothing is kept: what stands free belongs to who was placed there."""
        for offer in self._offers.values():
            offer.withdraw()
        self._wanted += 1
        try:
            yield
        finally:
            self._wanted -= 1

    def taken_by(self, run_id: str) -> GangName | None:
        """The gang that an attempt of the run took over from one before."""
        return self._in_use.get(run_id)

    def removed(self, gang: GangName) -> None:
        """Nothing of it is left."""
        if self._in_use.get(gang.run_id) == gang:
            del self._in_use[gang.run_id]


def worth_keeping(verdict: Classification) -> bool:
    """Tell whether the next attempt may run where this one did: nothing points at the place, and one may follow."""
    finished = policy_of(verdict.reason).exhausted is NextMove.EVALUATE
    return verdict.domain in _INNOCENT and not finished
