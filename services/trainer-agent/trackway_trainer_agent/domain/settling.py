"""The settle window: from the first sign of the end until enough is known to say why.

It closes as soon as every rank has a terminal record; survivors are stopped 300 ms after the first death, so
that their own words about it are still heard; it never lasts longer than 5 s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

STOP_SURVIVORS_AFTER_S = 0.3
CLOSE_AFTER_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What is known of the end; times are seconds of one monotonic clock."""

    world_size: int
    terminal: frozenset[int] = frozenset()
    """Ranks whose end is known."""
    opened_at: float | None = None
    """First death, or our order to stop."""
    stopped: bool = False
    """The survivors were told to stop."""
    limit_s: float = CLOSE_AFTER_S

    @property
    def survivors(self) -> tuple[int, ...]:
        """Ranks whose end is not known."""
        return tuple(rank for rank in range(self.world_size) if rank not in self.terminal)


@dataclass(frozen=True, slots=True)
class KeepWatching:
    """Nothing to do before ``until_s``; never, when absent."""

    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class StopSurvivors:
    """Tell these ranks to stop."""

    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Close:
    """Say why it ended, with what is known."""

    silent: tuple[int, ...]
    """Ranks that gave no terminal record."""


Move: TypeAlias = KeepWatching | StopSurvivors | Close


def rank_ended(window: Window, rank: int, *, failed: bool, now_s: float) -> Window:
    """A rank's end is known; a clean end alone opens no window: others may still have work."""
    opened_at = now_s if failed and window.opened_at is None else window.opened_at
    return replace(window, terminal=window.terminal | {rank}, opened_at=opened_at)


def stop_ordered(window: Window, *, now_s: float, grace_s: float) -> Window:
    """We told every rank to stop; they have their grace on top of the window."""
    opened_at = now_s if window.opened_at is None else window.opened_at
    return replace(window, opened_at=opened_at, stopped=True, limit_s=now_s - opened_at + CLOSE_AFTER_S + grace_s)


def survivors_stopped(window: Window) -> Window:
    """The survivors were told."""
    return replace(window, stopped=True)


def next_move(window: Window, *, now_s: float) -> Move:
    """What is due now."""
    if not window.survivors:
        return Close(silent=())
    if window.opened_at is None:
        return KeepWatching()
    elapsed_s = now_s - window.opened_at
    if elapsed_s >= window.limit_s:
        return Close(silent=window.survivors)
    if not window.stopped and elapsed_s >= STOP_SURVIVORS_AFTER_S:
        return StopSurvivors(ranks=window.survivors)
    return KeepWatching(until_s=window.opened_at + (window.limit_s if window.stopped else STOP_SURVIVORS_AFTER_S))
