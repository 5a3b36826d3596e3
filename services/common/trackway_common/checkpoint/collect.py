"""Carry retention out: supersede → tombstone → grace → trash → bytes gone → deleted.

Every step may be the last before a crash; the next collection goes on from there. Two may run at once.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace

from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.entries import Deleted, Supersede, Tombstone
from trackway_common.checkpoint.layout import data_prefix, log_prefix, parse_name, parse_path, trash_prefix
from trackway_common.checkpoint.log_state import LogState
from trackway_common.checkpoint.retention import KeepLast, to_delete, to_supersede, to_tombstone
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.object_store.port import ObjectStore

GRACE_MS = 60_000
"""Time for readers that began before the tombstone; longer reads place a hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What one collection did."""

    superseded: tuple[int, ...] = ()
    tombstoned: tuple[int, ...] = ()
    deleted: tuple[int, ...] = ()
    """Slots of commits."""
    dropped: tuple[str, ...] = ()
    """Folders that no commit can ever name."""


def collect(log: CommitLog, policy: KeepLast, *, grace_ms: int = GRACE_MS) -> Collected:
    """Apply the policy to the run, and free what may be freed.

    Raises:
        Unavailable: storage failed half-way; call again.
    """
    superseded = supersede(log, policy)
    return replace(reclaim(log, grace_ms=grace_ms), superseded=superseded)


def supersede(log: CommitLog, policy: KeepLast) -> tuple[int, ...]:
    """Say in the log which commits the policy does not count on any more; return their slots."""
    slots = [commit.slot for commit in to_supersede(log.refresh(), policy)]
    return tuple(slot for slot in slots if _appended(log, Supersede(commit_slot=slot, by_policy=str(policy))))


def reclaim(log: CommitLog, *, grace_ms: int = GRACE_MS) -> Collected:
    """Free what the log says may be freed: superseded and not held, or never to be committed. Needs no policy."""
    log.refresh()
    tombstoned = _tombstone(log)
    _empty_trash(log.store, log.run_id)
    deleted = _delete(log, grace_ms)
    dropped = _drop_abandoned(log)
    log.store.sweep(log_prefix(log.run_id))
    return Collected(tombstoned=tombstoned, deleted=deleted, dropped=dropped)


def _tombstone(log: CommitLog) -> tuple[int, ...]:
    slots = [commit.slot for commit in to_tombstone(log.state, log.now_ms())]
    return tuple(slot for slot in slots if _appended(log, Tombstone(commit_slot=slot)))


def _appended(log: CommitLog, body: Supersede | Tombstone) -> bool:
    """False when a hold or a quarantine took the slot first and changed what may go; the next collection sees it."""
    try:
        log.append(body)
    except CommandRejected:
        return False
    return True


def _delete(log: CommitLog, grace_ms: int) -> tuple[int, ...]:
    commits = to_delete(log.refresh(), log.now_ms(), grace_ms)
    for commit in commits:
        _free(log.store, log.run_id, str(parse_path(commit.commit.path)))
        # From the entry, not from the disk: after a crash in between nothing is left to measure.
        log.append(Deleted(commit_slot=commit.slot, freed_bytes=commit.commit.size_bytes))
    return tuple(commit.slot for commit in commits)


def _drop_abandoned(log: CommitLog) -> tuple[str, ...]:
    # Listed before the log is read: what is listed and has an old epoch can't be committed any more.
    names = log.store.names(data_prefix(log.run_id))
    state = log.refresh()
    dropped = tuple(name.rstrip("/") for name in names if _is_dead(state, name.rstrip("/")))
    for name in dropped:
        _free(log.store, log.run_id, name)
    return dropped


def _is_dead(state: LogState, text: str) -> bool:
    try:
        name = parse_name(text)
    except CommandRejected:
        return False  # Not ours: fsck reports it, a person decides.
    commit = state.committed_as(name.path)
    if commit is not None:
        return commit.deleted is not None
    return name.epoch < state.head.fence


def _free(store: ObjectStore, run_id: str, name: str) -> None:
    trash = f"{trash_prefix(run_id)}/{name}"
    with suppress(NotFound):  # a collection before this one moved it and died
        store.move(f"{data_prefix(run_id)}/{name}", trash)
    store.delete_below(trash)


def _empty_trash(store: ObjectStore, run_id: str) -> None:
    for name in store.names(trash_prefix(run_id)):
        store.delete_below(f"{trash_prefix(run_id)}/{name.rstrip('/')}")
