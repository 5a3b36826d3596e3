"""Where an attempt goes on: the newest commit below its fence that can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.entries import Commit, Fence, LogEntry, Quarantine, shortened
from trackway_common.checkpoint.layout import parse_path
from trackway_common.checkpoint.manifest import Manifest
from trackway_common.checkpoint.verify import Depth, verify_commit
from trackway_common.errors import CommandRejected, Fenced
from trackway_common.events import CheckpointRef


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """A newer commit that was not taken, and is quarantined now."""

    slot: int
    path: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeTarget:
    checkpoint: CheckpointRef | None
    """None: nothing to resume from; training starts at step 0."""
    manifest: Manifest | None
    """Of that checkpoint."""
    passed_over: tuple[PassedOver, ...]


def raise_fence(log: CommitLog, epoch: int) -> LogEntry:
    """Make this epoch the owner of the run's checkpoints, before any byte is written.

    Raises:
        Fenced: a higher epoch owns them.
    """
    return log.append(Fence(epoch=epoch), epoch=epoch)


def choose_resume_target(log: CommitLog, fence: LogEntry, *, depth: Depth = Depth.HASHES) -> ResumeTarget:
    """Pick the newest restorable commit below the attempt's own fence, falling back along parents.

    What fails verification is quarantined on the way. Where nothing fails, the log costs one listing and one read.

    Raises:
        Fenced: a higher epoch owns the run by now.
        Unavailable: the store could not be read; nothing was decided.
    """
    if not isinstance(fence.body, Fence):
        raise CommandRejected(f"slot {fence.slot} is no fence; raise one before choosing where to resume")
    passed_over: list[PassedOver] = []
    for slot, path, manifest_digest in _candidates(log, fence.slot, fence.body.epoch):
        checked = verify_commit(log.store, log.run_id, path, manifest_digest, depth)
        if checked.ok:
            checkpoint = _ref(log.run_id, slot, path, manifest_digest)
            return ResumeTarget(checkpoint=checkpoint, manifest=checked.manifest, passed_over=tuple(passed_over))
        why = shortened("; ".join(checked.problems))
        log.append(Quarantine(commit_slot=slot, why=why), epoch=fence.body.epoch)
        passed_over.append(PassedOver(slot=slot, path=path, why=why))
    return ResumeTarget(checkpoint=None, manifest=None, passed_over=tuple(passed_over))


def _candidates(log: CommitLog, below: int, epoch: int) -> Iterator[tuple[int, str, str]]:
    """Newest first, then along parents: asked again only after the one before was quarantined."""
    tip = log.tip()
    if tip is None or tip.head.fence != epoch:
        raise Fenced(f"epoch {epoch} is fenced: epoch {tip.head.fence if tip else 0} owns the run's checkpoints; stop")
    newest = next((commit for commit in reversed(tip.head.commits) if commit.slot < below), None)
    tried: int | None = None
    if newest is not None:
        yield newest.slot, newest.path, newest.manifest_digest
        tried = newest.slot
    # Here the head was not enough: it names eight commits, and no parents.
    while (commit := _next(log, below, tried)) is not None:
        tried, body = commit
        yield tried, body.path, body.manifest_digest


def _next(log: CommitLog, below: int, tried: int | None) -> tuple[int, Commit] | None:
    restorable = {commit.slot: commit.commit for commit in log.refresh().restorable if commit.slot < below}
    parent = log.state.commits[tried].commit.parent if tried is not None else None
    if parent is not None and parent.run_id == log.run_id and parent.slot in restorable:
        return parent.slot, restorable[parent.slot]
    return next(iter(restorable.items()), None)


def _ref(run_id: str, slot: int, path: str, manifest_digest: str) -> CheckpointRef:
    name = parse_path(path)
    return CheckpointRef(
        run_id=run_id, step=name.step, epoch=name.epoch, nonce=name.nonce, manifest_digest=manifest_digest, slot=slot
    )
