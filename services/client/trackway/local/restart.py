"""When to start a dead child again."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_S = 0.2
LONGEST_S = 30.0
HEALTHY_S = 30.0
"""Who lived this long is taken for well: its next death is a first one again."""


@dataclass(slots=True)
class Backoff:
    """Doubles with each death in a row."""

    deaths: int = 0

    def after(self, lived_s: float) -> float:
        """Return how long to wait before the next start, given how long the child was ready."""
        if lived_s >= HEALTHY_S:
            self.deaths = 0
        self.deaths += 1
        return min(LONGEST_S, float(FIRST_S * 2 ** min(self.deaths - 1, 16)))
