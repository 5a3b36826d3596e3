"""How far each partition is projected, for those who wait for it and those who report it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple


class Place(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class Progress:
    """Positions of one process's projectors; kept in memory, the ledger is the truth."""

    def __init__(self) -> None:
        self._positions: dict[Place, int] = {}
        self._appended_at: dict[Place, datetime] = {}
        self._moved = asyncio.Condition()

    def position(self, place: Place) -> int:
        """First offset that is not projected yet."""
        return self._positions.get(place, 0)

    def appended_at(self, place: Place) -> datetime | None:
        """When the newest projected record was appended."""
        return self._appended_at.get(place)

    async def advance(self, place: Place, position: int, appended_at: datetime | None = None) -> None:
        """Say that everything before the position is projected."""
        async with self._moved:
            self._positions[place] = max(position, self._positions.get(place, 0))
            if appended_at is not None:
                self._appended_at[place] = appended_at
            self._moved.notify_all()

    async def reach(self, ends: Mapping[Place, int], timeout_s: float) -> int:
        """Wait until every place has reached its end, at most so long; return the records that are missing."""
        try:
            async with asyncio.timeout(timeout_s), self._moved:
                await self._moved.wait_for(lambda: self.behind(ends) == 0)
        except TimeoutError:
            pass  # how far behind it is, is the answer
        return self.behind(ends)

    def behind(self, ends: Mapping[Place, int]) -> int:
        """Records before the ends that are not projected."""
        return sum(max(0, end - self.position(place)) for place, end in ends.items())
