"""Which checkpoints may go. Pure functions of the folded log; admission has the last word on each."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.checkpoint.admission import MIN_RESTORABLE
from trackway_common.checkpoint.log_state import CommitState, LogState


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepLast:
    """The newest so many restorable commits stay, and never fewer than two."""

    count: int

    def __str__(self) -> str:
        return f"keep_last={self.count}"


def to_supersede(state: LogState, policy: KeepLast) -> tuple[CommitState, ...]:
    """Commits that the policy does not count on any more, oldest first; held ones too: a hold keeps the bytes."""
    restorable = state.restorable
    count = max(policy.count, MIN_RESTORABLE)
    if len(restorable) <= count:
        return ()
    oldest_kept = restorable[count - 1].slot
    return tuple(
        commit
        for commit in state.commits.values()
        if commit.slot < oldest_kept and commit.superseded is None and commit.tombstoned is None
    )


def to_tombstone(state: LogState, now_ms: int) -> tuple[CommitState, ...]:
    """Superseded commits whose bytes nobody needs, oldest first; the newest and two restorable ones are never in it."""
    always = {commit.slot for commit in state.restorable[:MIN_RESTORABLE]}
    return tuple(
        commit
        for commit in state.commits.values()
        if commit.superseded is not None
        and commit.tombstoned is None
        and commit.slot not in always
        and not commit.held(now_ms)
    )


def to_delete(state: LogState, now_ms: int, grace_ms: int) -> tuple[CommitState, ...]:
    """Tombstoned commits whose grace is over and whose bytes may still be there, oldest first."""
    return tuple(
        commit
        for commit in state.commits.values()
        if commit.tombstoned is not None and commit.deleted is None and commit.tombstoned_at_ms + grace_ms <= now_ms
    )


def next_due_ms(state: LogState, grace_ms: int) -> int | None:
    """When something more may be freed without another entry: a grace ends, or a hold; None when nothing waits."""
    graces = [
        commit.tombstoned_at_ms + grace_ms
        for commit in state.commits.values()
        if commit.tombstoned is not None and commit.deleted is None
    ]
    holds = [
        hold.expires_at_ms
        for commit in state.commits.values()
        if commit.superseded is not None and commit.tombstoned is None
        for hold in commit.holds
        if hold.expires_at_ms is not None
    ]
    return min((*graces, *holds), default=None)
