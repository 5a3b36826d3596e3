"""Where a rank's time went, as its session says it with every report and capture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

MAX_SECONDS = 1e9
"""Thirty years: whatever says more is not a clock."""
MAX_MOMENT_MS = 9_000_000_000_000
"""Year 2255, as everywhere in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """Seconds of one rank, cumulative; the last three add up to the time since its first report."""

    restore_seconds: float = 0.0
    """In ``restore()``, before the first report."""
    data_wait_seconds: float = 0.0
    checkpoint_stall_seconds: float = 0.0
    """Blocked in ``checkpoint()``."""
    step_seconds: float = 0.0
    """All other time since the first report."""


def read_phases(members: Mapping[str, object]) -> Phases:
    """Phases as a message holds them.

    Raises:
        ValueError: a field that there is not, or a value that is no time.
    """
    known = {field.name for field in fields(Phases)}
    if strange := sorted(members.keys() - known):
        raise ValueError(f"phases have no {strange[0]!r}")
    return Phases(**{name: _seconds(name, value) for name, value in members.items()})


def read_moment_ms(value: object) -> int:
    """Milliseconds since 1970 as a message holds them.

    Raises:
        ValueError: a value that is no such time.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_MOMENT_MS:
        raise ValueError(f"at_ms is {str(value)[:40]!r}, not a time in milliseconds")
    return value


def _seconds(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {type(value).__name__}, not a number")
    if not (math.isfinite(value) and 0 <= value <= MAX_SECONDS):
        raise ValueError(f"{name} is {value}, not a time in seconds")
    return float(value)
