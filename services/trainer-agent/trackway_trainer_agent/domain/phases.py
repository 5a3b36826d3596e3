"""The clocks of an attempt, from those of its ranks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from trackway_common.events import PhaseSeconds


def attempt_phases(ranks: Iterable[PhaseSeconds | None]) -> PhaseSeconds | None:
    """The clocks of the rank that waited longest for data and checkpoints, at its own moment.

    In synchronous training the others stand still while one waits, so its clocks are the attempt's, and as one rank's
    they add up. Restores run side by side before the first step: the slowest counts. None: no rank opened a session.
    """
    measured = [phases for phases in ranks if phases is not None]
    if not measured:
        return None
    slowest = max(measured, key=lambda phases: (_waited_seconds(phases), -phases.rank))
    restore_seconds = max(phases.restore_seconds for phases in measured)
    return replace(slowest, restore_seconds=restore_seconds)


def newest(measured: Iterable[PhaseSeconds]) -> datetime:
    """When the last of these was measured."""
    return max(phases.measured_at for phases in measured)


def _waited_seconds(phases: PhaseSeconds) -> float:
    return phases.data_wait_seconds + phases.checkpoint_stall_seconds
