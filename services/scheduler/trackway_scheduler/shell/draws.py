"""Chance, at the edge: what the domain gets as a value."""

from __future__ import annotations

import secrets

SEED_BITS = 31
"""Fits every library's seed, numpy's legacy 32-bit one included."""


class Draws:
    """Draws from the system's randomness."""

    def seed(self) -> int:
        """A seed for a run that names none."""
        return secrets.randbits(SEED_BITS)

    def fraction(self) -> float:
        """A number in [0, 1)."""
        return secrets.randbelow(1 << 53) / (1 << 53)
