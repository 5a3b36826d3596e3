"""How long an outage is waited out."""

from __future__ import annotations

import time
from collections.abc import Callable

from trackway_common.errors import TrackwayError, Unavailable

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
OUTAGE_S = 120.0
"""A restarted stack is back within half a minute; after this nobody seems to restart it."""


class Patience:
    """Pauses between tries that grow, up to an outage's longest length."""

    def __init__(
        self,
        outage_s: float = OUTAGE_S,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._outage_s = outage_s
        self._sleep = sleep
        self._monotonic = monotonic
        self.reset()

    def reset(self) -> None:
        """The service lives: an outage that comes now is a new one."""
        self._pause_s = FIRST_PAUSE_S
        self._since = self._monotonic()

    def bear(self, error: TrackwayError) -> None:
        """Pause before the next try.

        Raises:
            Unavailable: the outage has lasted too long.
        """
        waited_s = self._monotonic() - self._since
        if waited_s >= self._outage_s:
            raise Unavailable(f"gave up after {waited_s:.0f} s: {error}") from error
        self.pause()

    def pause(self) -> None:
        """Wait a moment, a longer one each time."""
        self._sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
