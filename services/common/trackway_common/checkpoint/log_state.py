"""Fold of a commit log: which checkpoints exist, and what may still be done with them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import assert_never

from trackway_common.checkpoint.entries import (
    Body,
    Commit,
    Deleted,
    Fence,
    Head,
    HeadCommit,
    Hold,
    LogEntry,
    Quarantine,
    Release,
    Supersede,
    Tombstone,
)
from trackway_common.errors import CorruptLog

HEAD_COMMITS = 8
"""Restorable commits that a head names: more than a fall-back ever walked, and small enough for an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveHold:
    slot: int
    """Of the hold's entry."""
    consumer: str
    reason: str
    ttl_seconds: int
    expires_at_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitState:
    """One commit and what later entries said about it, each by the slot of that entry."""

    slot: int
    at_ms: int
    commit: Commit
    holds: tuple[ActiveHold, ...] = ()
    superseded: int | None = None
    quarantined: int | None = None
    quarantined_why: str = ""
    tombstoned: int | None = None
    tombstoned_at_ms: int = 0
    deleted: int | None = None

    @property
    def restorable(self) -> bool:
        """Its bytes must be there and may be used."""
        return self.quarantined is None and self.tombstoned is None

    def held(self, now_ms: int) -> bool:
        """Tell whether some reader still needs its bytes."""
        return any(hold.expires_at_ms is None or hold.expires_at_ms > now_ms for hold in self.holds)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    slot: int = 0
    """Of the last entry folded; 0 for an empty log."""
    head: Head = field(default_factory=Head)
    fence_slot: int = 0
    commits: Mapping[int, CommitState] = field(default_factory=lambda: MappingProxyType({}))
    """By slot, oldest first."""

    @property
    def restorable(self) -> tuple[CommitState, ...]:
        """Restorable commits, newest first."""
        return tuple(commit for commit in self._newest_first() if commit.restorable)

    def committed_as(self, path: str) -> CommitState | None:
        """The commit of this path, if any."""
        return next((commit for commit in self._newest_first() if commit.commit.path == path), None)

    def _newest_first(self) -> Iterator[CommitState]:
        return reversed(tuple(self.commits.values()))


def fold(state: LogState, entries: Iterable[LogEntry]) -> LogState:
    """Advance the state; raises ``CorruptLog`` at an entry that no correct writer can have written."""
    slot, head, fence_slot, commits = state.slot, state.head, state.fence_slot, dict(state.commits)
    for entry in entries:
        _check(entry, slot, head)
        slot, head = entry.slot, entry.head
        fence_slot = slot if isinstance(entry.body, Fence) else fence_slot
        _apply(commits, entry)
    return LogState(slot=slot, head=head, fence_slot=fence_slot, commits=MappingProxyType(commits))


def head_after(head: Head, slot: int, body: Body) -> Head:
    """The head that an entry carries, from the head before it."""
    match body:
        case Fence():
            return replace(head, fence=body.epoch)
        case Commit():
            newest = HeadCommit(slot=slot, path=body.path, manifest_digest=body.manifest_digest)
            return replace(head, commits=(*head.commits, newest)[-HEAD_COMMITS:])
        case Quarantine() | Tombstone():
            return replace(head, commits=tuple(c for c in head.commits if c.slot != body.commit_slot))
        case Hold() | Release() | Supersede() | Deleted():
            return head
        case _:
            assert_never(body)


def _check(entry: LogEntry, slot: int, head: Head) -> None:
    if entry.slot != slot + 1:
        raise CorruptLog(f"commit log slot {slot + 1} is missing: slot {entry.slot} follows {slot}")
    if entry.head != head_after(head, entry.slot, entry.body):
        raise CorruptLog(f"commit log slot {entry.slot}: its head does not follow from the entry before")
    if isinstance(entry.body, Fence) and entry.body.epoch <= head.fence:
        raise CorruptLog(f"commit log slot {entry.slot}: fence {entry.body.epoch} after fence {head.fence}")
    if isinstance(entry.body, Commit) and entry.body.epoch != head.fence:
        raise CorruptLog(f"commit log slot {entry.slot}: commit of epoch {entry.body.epoch} under fence {head.fence}")


def _apply(commits: dict[int, CommitState], entry: LogEntry) -> None:
    body = entry.body
    if isinstance(body, Fence):
        return
    if isinstance(body, Commit):
        commits[entry.slot] = CommitState(slot=entry.slot, at_ms=entry.at_ms, commit=body)
        return
    if body.commit_slot not in commits:
        raise CorruptLog(f"commit log slot {entry.slot}: there is no commit in slot {body.commit_slot}")
    commits[body.commit_slot] = _evolved(commits[body.commit_slot], entry, body)


def _evolved(
    commit: CommitState, entry: LogEntry, body: Hold | Release | Supersede | Quarantine | Tombstone | Deleted
) -> CommitState:
    match body:
        case Hold():
            return replace(commit, holds=(*_holds_without(commit, body.consumer), _active(entry, body)))
        case Release():
            return replace(commit, holds=_holds_without(commit, body.consumer))
        case Supersede():
            return replace(commit, superseded=entry.slot)
        case Quarantine():
            return replace(commit, quarantined=entry.slot, quarantined_why=body.why)
        case Tombstone():
            return replace(commit, tombstoned=entry.slot, tombstoned_at_ms=entry.at_ms)
        case Deleted():
            return replace(commit, deleted=entry.slot)
        case _:
            assert_never(body)


def _active(entry: LogEntry, body: Hold) -> ActiveHold:
    expires_at_ms = entry.at_ms + body.ttl_seconds * 1000 if body.ttl_seconds else None
    return ActiveHold(
        slot=entry.slot,
        consumer=body.consumer,
        reason=body.reason,
        ttl_seconds=body.ttl_seconds,
        expires_at_ms=expires_at_ms,
    )


def _holds_without(commit: CommitState, consumer: str) -> tuple[ActiveHold, ...]:
    return tuple(hold for hold in commit.holds if hold.consumer != consumer)
