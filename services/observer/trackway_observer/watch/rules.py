"""What a watch concludes from heartbeats: pure, from what was last heard and the time now.

Advice only: a rank that is quiet may be dead, hung or merely cut off from the log, and only its agent can tell.
Nothing is kept that the next heartbeats would not teach again, so a restart costs one quiet period at most.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

from trackway_common.events import Signal, SignalKind

_NAMESPACE = uuid.UUID("5d7d6f5e-4a55-5f0c-9a2e-7f1f6b0c9a11")
"""Of signal ids: the same quiet period gives the same id from any instance of the watch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """How long quiet is normal, in seconds."""

    heartbeat_s: float
    progress_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Which rank of which attempt."""

    run_id: str
    attempt: int
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """What was last heard of a rank. Times are seconds of the watch's own monotonic clock."""

    last_step: int
    heard_at_s: float
    progressed_at_s: float
    signalled: frozenset[SignalKind] = frozenset()
    """What was said about the present quiet period."""


def heard(pulse: Pulse | None, step: int, now_s: float) -> Pulse:
    """Return the pulse after a heartbeat that reports a step."""
    if pulse is None or step > pulse.last_step:
        return Pulse(last_step=step, heard_at_s=now_s, progressed_at_s=now_s)
    return replace(pulse, heard_at_s=now_s, signalled=pulse.signalled - {SignalKind.NO_HEARTBEAT})


def overdue(rank: Rank, pulse: Pulse, now_s: float, now_ms: int, limits: Thresholds) -> tuple[Signal, ...]:
    """Return the signals that are due and were not given yet.

    A rank that is not heard from can't show progress either, so only the missing heartbeat is signalled then.
    Before its first step a rank starts up and compiles; no progress is expected of it yet.
    """
    silent_s, stuck_s = now_s - pulse.heard_at_s, now_s - pulse.progressed_at_s
    if silent_s > limits.heartbeat_s:
        due = (SignalKind.NO_HEARTBEAT, silent_s, limits.heartbeat_s)
    elif pulse.last_step > 0 and stuck_s > limits.progress_s:
        due = (SignalKind.NO_STEP_PROGRESS, stuck_s, limits.progress_s)
    else:
        return ()
    kind, quiet_s, threshold_s = due
    if kind in pulse.signalled:
        return ()
    return (_signal(rank, pulse, kind, quiet_s, threshold_s, now_ms),)


def noted(pulse: Pulse, signals: tuple[Signal, ...]) -> Pulse:
    """Return the pulse after its signals were sent."""
    return replace(pulse, signalled=pulse.signalled | {signal.kind for signal in signals})


def _signal(rank: Rank, pulse: Pulse, kind: SignalKind, quiet_s: float, threshold_s: float, now_ms: int) -> Signal:
    what = "no heartbeat" if kind is SignalKind.NO_HEARTBEAT else "no step finished"
    period = f"{kind}/{rank.run_id}/{rank.attempt}/{rank.rank}/{pulse.last_step}"
    return Signal(
        signal_id=str(uuid.uuid5(_NAMESPACE, period)),
        kind=kind,
        run_id=rank.run_id,
        attempt=rank.attempt,
        rank=rank.rank,
        quiet_seconds=quiet_s,
        threshold_seconds=threshold_s,
        message=f"rank {rank.rank} of attempt {rank.attempt}: {what} for {quiet_s:.0f} s, after step {pulse.last_step}",
        observed_at_ms=now_ms,
    )
