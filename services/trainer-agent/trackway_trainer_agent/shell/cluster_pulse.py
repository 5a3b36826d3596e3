"""Whether the cluster lives, and whether it is still the same one. One for the whole agent."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from trackway_common.clock import Clock
from trackway_common.errors import Unavailable

from trackway_trainer_agent.gangs import ClusterView, Gangs

log = logging.getLogger(__name__)

BEAT_S = 1.0
STUBBORN_S = 60.0
"""A head whose port is open may only be slow; after this long it counts as gone all the same."""


class ClusterPulse:
    """Asks the cluster once a second."""

    def __init__(self, gangs: Gangs, clock: Clock, listening: Callable[[], Awaitable[bool]]) -> None:
        """``listening`` tells whether anything accepts connections where the head should be."""
        self._gangs = gangs
        self._clock = clock
        self._listening = listening
        self._heard_at = clock.monotonic()
        self.view: ClusterView | None = None
        """The last answer."""

    @property
    def silent_s(self) -> float:
        """Seconds since the last answer, or since the start."""
        return self._clock.monotonic() - self._heard_at

    @property
    def reachable(self) -> bool:
        """The cluster answered a moment ago."""
        return self.view is not None and self.silent_s < 3 * BEAT_S

    async def run(self) -> None:
        """Ask, for ever."""
        while True:
            await self.ask()
            await self._clock.sleep(BEAT_S)

    async def ask(self) -> None:
        """Ask now."""
        try:
            view = await self._gangs.cluster()
        except Unavailable as error:
            if self.silent_s < 2 * BEAT_S:
                log.warning("the cluster does not answer", extra={"error": str(error)})
            return
        if self.view is not None and view.cluster_id != self.view.cluster_id:
            log.warning("another cluster answers", extra={"was": self.view.cluster_id, "is": view.cluster_id})
        self.view = view
        self._heard_at = self._clock.monotonic()

    async def lost(self, cluster_id: str, silent_limit_s: float) -> bool:
        """Tell whether the cluster of this id is gone for good, and all that was placed on it."""
        if self.view is not None and self.silent_s < silent_limit_s:
            return self.view.cluster_id != cluster_id
        if self.silent_s < silent_limit_s:
            return False
        return self.silent_s >= STUBBORN_S or not await self._listening()
