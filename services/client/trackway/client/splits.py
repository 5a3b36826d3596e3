"""Which split a file belongs to: by the hash of its path, so that it stays there when others come and go."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction

from trackway_common.errors import CommandRejected, FieldViolation

REST = "train"
"""Split of every file that no other one takes."""
_BUCKETS = 1 << 64


class SplitRule:
    """Shares of the hash space, in the order of the splits' names."""

    def __init__(self, shares: Sequence[tuple[str, Fraction]]) -> None:
        self.names = tuple(sorted(name for name, _ in shares))
        upper, self._bounds = Fraction(0), list[tuple[int, str]]()
        for name, share in sorted(shares):
            upper += share
            self._bounds.append((int(upper * _BUCKETS), name))

    def split_of(self, path: str) -> str:
        """Split of a file, by its path relative to the root."""
        bucket = int.from_bytes(hashlib.sha256(path.encode()).digest()[:8], "big")
        return next((name for bound, name in self._bounds if bucket < bound), REST)


def parse_splits(texts: Sequence[str]) -> SplitRule:
    """Read ``NAME=FRACTION`` arguments.

    Raises:
        CommandRejected: not of that form, a name twice, or shares that add up to more than 1.
    """
    shares: dict[str, Fraction] = {}
    for text in texts:
        name, share = _parsed(text)
        if name in shares:
            raise _rejected(f"{name} stands twice; give each split one fraction")
        shares[name] = share
    total = sum(shares.values(), Fraction(0))
    if total > 1:
        raise _rejected(f"the fractions add up to {float(total):g}; they share 1, and {REST} gets the rest")
    if REST in shares and total != 1:
        raise _rejected(f"{REST} gets the rest: leave it out, or let the fractions add up to 1")
    return SplitRule(tuple(shares.items()))


def _parsed(text: str) -> tuple[str, Fraction]:
    name, _, share_text = text.partition("=")
    try:
        share = Fraction(share_text)
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not name.isidentifier() or not 0 < share <= 1:
        raise _rejected(f"{text!r} is no split; write NAME=FRACTION with a fraction above 0, such as heldout=0.1")
    return name, share


def _rejected(description: str) -> CommandRejected:
    return CommandRejected(description, violations=(FieldViolation(field="split", description=description),))
