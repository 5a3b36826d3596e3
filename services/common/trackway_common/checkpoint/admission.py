"""Which entry may follow a commit log. Pure; the slot race makes its answer hold.

Every rule answers with the slot that already says the same, so that a writer may always ask again.
"""

from __future__ import annotations

from typing import assert_never

from trackway_common.checkpoint.entries import (
    Body,
    Commit,
    Deleted,
    Fence,
    Hold,
    Quarantine,
    Release,
    Supersede,
    Tombstone,
)
from trackway_common.checkpoint.log_state import CommitState, LogState
from trackway_common.errors import CommandRejected, Fenced, NotFound

MIN_RESTORABLE = 2
"""Restorable commits that no retention may go below: one may turn out to be damaged."""


def admit(state: LogState, body: Body, *, at_ms: int, epoch: int | None = None) -> int | None:
    """Return the slot that already says this, or None when the entry may be appended.

    ``epoch`` is that of the attempt that speaks; services, which no attempt outlives, speak without one.

    Raises:
        Fenced: a higher epoch owns the run.
        CommandRejected: the entry would break a promise; the message says which.
    """
    if epoch is not None and epoch < state.head.fence:
        raise Fenced(f"epoch {epoch} is fenced: epoch {state.head.fence} owns the run's checkpoints; stop")
    match body:
        case Fence():
            return _admit_fence(state, body)
        case Commit():
            return _admit_commit(state, body)
        case Hold():
            return _admit_hold(_commit_of(state, body.commit_slot), body, at_ms)
        case Release():
            return _admit_release(_commit_of(state, body.commit_slot), state, body)
        case Supersede():
            return _admit_supersede(_commit_of(state, body.commit_slot), state)
        case Quarantine():
            return _commit_of(state, body.commit_slot).quarantined
        case Tombstone():
            return _admit_tombstone(_commit_of(state, body.commit_slot), state, at_ms)
        case Deleted():
            return _admit_deleted(_commit_of(state, body.commit_slot))
        case _:
            assert_never(body)


def _admit_fence(state: LogState, body: Fence) -> int | None:
    if body.epoch < 1:
        raise CommandRejected(f"epoch {body.epoch} cannot be fenced; epochs begin at 1")
    if body.epoch < state.head.fence:
        raise Fenced(f"epoch {body.epoch} is fenced: epoch {state.head.fence} owns the run's checkpoints; stop")
    return state.fence_slot if body.epoch == state.head.fence else None


def _admit_commit(state: LogState, body: Commit) -> int | None:
    existing = state.committed_as(body.path)
    if existing is not None:
        return existing.slot
    if body.epoch < state.head.fence:
        raise Fenced(f"epoch {body.epoch} is fenced: epoch {state.head.fence} owns the run's checkpoints; stop")
    if body.epoch > state.head.fence:
        raise CommandRejected(f"epoch {body.epoch} has raised no fence (the log's is {state.head.fence}); fence first")
    return None


def _admit_hold(commit: CommitState, body: Hold, at_ms: int) -> int | None:
    if not commit.restorable:
        raise CommandRejected(
            f"the commit in slot {commit.slot} can't be held: it was given up already", reason="CHECKPOINT_GONE"
        )
    for hold in commit.holds:
        if (hold.consumer, hold.reason, hold.ttl_seconds, hold.expires_at_ms) == (
            body.consumer,
            body.reason,
            body.ttl_seconds,
            None,
        ):
            return hold.slot
    return None


def _admit_release(commit: CommitState, state: LogState, body: Release) -> int | None:
    if any(hold.consumer == body.consumer for hold in commit.holds):
        return None
    # No hold is what the caller wants; the log as it stands says so.
    return state.slot


def _admit_supersede(commit: CommitState, state: LogState) -> int | None:
    if commit.superseded is not None:
        return commit.superseded
    if state.restorable and state.restorable[0].slot == commit.slot:
        raise CommandRejected(f"the commit in slot {commit.slot} is the newest: it can't be superseded")
    return None


def _admit_tombstone(commit: CommitState, state: LogState, at_ms: int) -> int | None:
    if commit.tombstoned is not None:
        return commit.tombstoned
    if commit.superseded is None:
        raise CommandRejected(f"the commit in slot {commit.slot} is not superseded; supersede it before deleting")
    if commit.held(at_ms):
        raise CommandRejected(f"the commit in slot {commit.slot} is held", reason="CHECKPOINT_HELD")
    others = [other for other in state.restorable if other.slot != commit.slot]
    if commit.restorable and (len(others) < MIN_RESTORABLE or others[0].slot < commit.slot):
        raise CommandRejected(
            f"the commit in slot {commit.slot} must stay: the newest and {MIN_RESTORABLE} restorable commits always do"
        )
    return None


def _admit_deleted(commit: CommitState) -> int | None:
    if commit.tombstoned is None:
        raise CommandRejected(f"the commit in slot {commit.slot} has no tombstone; its bytes may be in use")
    return commit.deleted


def _commit_of(state: LogState, slot: int) -> CommitState:
    try:
        return state.commits[slot]
    except KeyError:
        raise NotFound(f"slot {slot} of the commit log holds no commit") from None
