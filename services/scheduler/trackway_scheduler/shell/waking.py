"""Wait for news or for a while, whichever comes first."""

from __future__ import annotations

import asyncio

from trackway_common.clock import Clock


class Waker:
    """One waiter; wakes that come while it works are kept."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._news = asyncio.Event()

    def wake(self) -> None:
        """There is news."""
        self._news.set()

    async def wait(self, at_most_s: float) -> None:
        """Return when there is news, or after that time."""
        tasks = (asyncio.ensure_future(self._news.wait()), asyncio.ensure_future(self._clock.sleep(at_most_s)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        self._news.clear()
