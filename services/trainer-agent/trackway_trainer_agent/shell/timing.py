"""How long the shell waits for things."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds; the defaults are those of the contracts where these name any."""

    drain_every_s: float = 0.1
    """Between two looks at a rank that had nothing new."""
    telemetry_every_s: float = 0.25
    heartbeat_every_s: float = 1.0
    retry_s: float = 0.5
    """Before asking again what was unavailable."""
    placement_wait_s: float = 60.0
    stop_grace_s: float = 10.0
    """Between SIGTERM and SIGKILL when an attempt is stopped on purpose."""
    survivor_grace_s: float = 1.0
    """The same for survivors of a failure: they mostly wait for a peer that is gone."""
    cluster_silent_s: float = 10.0
    """A head that is gone for so long has taken the placements with it."""
    saves_before_end_s: float = 2.0
    """How long the receipt waits for captures that are still being written."""
    captures_deadline_s: float = 120.0
    """How long a fence waits for the captures of the attempt before, and a capture may take after the end."""
    commit_limit_s: float = 60.0
    """For the checkpointer to commit what is complete, after the end."""
