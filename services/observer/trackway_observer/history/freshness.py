"""Waits until the read model has reached the log's end as it was when a call came."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from trackway_common import topics
from trackway_common.clock import Clock
from trackway_common.errors import Unavailable
from trackway_common.event_log import EventLog

from trackway_observer.projection.lag import ends_of
from trackway_observer.projection.progress import Place

log = logging.getLogger(__name__)

FACTS: Sequence[str] = topics.FACT_TOPICS
EVERYTHING: Sequence[str] = (*topics.FACT_TOPICS, topics.TELEMETRY)


ASK_S = 1.0
"""A healthy broker says in milliseconds where its partitions end."""


class Reach(Protocol):
    """How far the projection is."""

    async def reach(self, ends: Mapping[Place, int], timeout_s: float) -> int:
        """Wait until every place has reached its end, at most so long; return the records that are missing."""
        ...


class Freshness:
    """One wait per call, bounded; an answer never fails because the log is away."""

    def __init__(self, event_log: EventLog, progress: Reach, clock: Clock, wait_s: float) -> None:
        self._log = event_log
        self._progress = progress
        self._clock = clock
        self._wait_s = wait_s
        self._ends: dict[Place, int] = {}
        """Newest ends seen: what lag is measured by while the log is away."""

    async def catch_up(self, read: Sequence[str] = FACTS) -> int:
        """Wait for what the given topics hold now.

        Returns:
            Records that are missing all the same; while the log is away, of those known before.
        """
        began = self._clock.monotonic()
        try:
            async with asyncio.timeout(ASK_S):
                self._ends |= await ends_of(self._log, read)
        except (Unavailable, TimeoutError) as error:
            log.warning("reading without the log's end", extra={"error": str(error)})
        ends = {place: end for place, end in self._ends.items() if place.topic in read}
        return await self._progress.reach(ends, max(0.0, self._wait_s - (self._clock.monotonic() - began)))
