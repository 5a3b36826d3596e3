"""Commit a plain folder of files, by any process, through the same protocol; and take it out again.

For trainers that write their own checkpoints: JAX, XGBoost, Hugging Face and the like.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trackway_common.checkpoint.commit import CommitRequest, commit_checkpoint
from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.entries import LogEntry
from trackway_common.checkpoint.files import checked_chunks
from trackway_common.checkpoint.layout import CheckpointName, checkpoint_prefix, new_nonce
from trackway_common.checkpoint.manifest import Manifest
from trackway_common.checkpoint.save import RankSave, StagedFile, write_rank
from trackway_common.errors import CommandRejected, Fenced
from trackway_common.events import CheckpointRef, MetricValue
from trackway_common.object_store.port import CHUNK_BYTES, ObjectStore

LAYOUT = "directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorySave:
    """A folder to be committed, and what it was made from."""

    path: Path
    run_id: str
    name: CheckpointName
    config_digest: str = ""
    dataset_digests: tuple[str, ...] = ()
    code_digest: str = ""
    parent: CheckpointRef | None = None
    metrics: tuple[MetricValue, ...] = ()


def commit_directory(log: CommitLog, save: DirectorySave) -> LogEntry:
    """Copy the folder into the store, durable, and commit it under the epoch that owns the run.

    Raises:
        CommandRejected: the folder is empty, holds a symbolic link, or changed meanwhile.
        Fenced: another epoch owns the run.
    """
    owner = log.refresh().head.fence
    if save.name.epoch < owner:
        raise Fenced(f"epoch {save.name.epoch} is fenced: epoch {owner} owns the run's checkpoints; stop")
    stage_directory(log.store, save)
    return commit_checkpoint(log, commit_request(save))


def stage_directory(store: ObjectStore, save: DirectorySave) -> None:
    """Copy the folder and write its receipt: all but the commit, which a checkpointer may do."""
    files = _files(save.path)
    if not files:
        raise CommandRejected(f"{save.path} holds no file; a checkpoint needs one at least")
    rank_save = RankSave(
        run_id=save.run_id,
        name=save.name,
        rank=0,
        world_size=1,
        config_digest=save.config_digest,
        dataset_digests=save.dataset_digests,
        items_planned=len(files),
        layout=LAYOUT,
        code_digest=save.code_digest,
    )
    write_rank(store, rank_save, [_staged(save.path, file) for file in files])


def commit_request(save: DirectorySave) -> CommitRequest:
    """What to ask the checkpointer for once the folder is staged."""
    return CommitRequest(
        run_id=save.run_id,
        name=save.name,
        world_size=1,
        config_digest=save.config_digest,
        dataset_digests=save.dataset_digests,
        parent=save.parent,
        metrics=save.metrics,
    )


def directory_name(epoch: int, step: int) -> CheckpointName:
    """A new name for a folder of that step."""
    return CheckpointName(step=step, epoch=epoch, nonce=new_nonce())


def restore_directory(store: ObjectStore, manifest: Manifest, target: Path) -> None:
    """Write the shard files of a committed checkpoint below a new folder, checking every byte.

    Raises:
        CommandRejected: ``CHECKPOINT_DAMAGED``; what was written so far must not be used.
    """
    prefix = checkpoint_prefix(manifest.run_id, manifest.name)
    target.mkdir(parents=True, exist_ok=False)
    for record in manifest.files:
        folder, _, below = record.path.partition("/")
        if folder != "shard":
            continue
        path = target / below
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            for chunk in checked_chunks(store, prefix, record):
                file.write(chunk)


def _files(root: Path) -> list[Path]:
    found: list[Path] = []
    for folder, folders, names in os.walk(root, onerror=_refuse):
        for name in (*folders, *names):
            path = Path(folder, name)
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise CommandRejected(f"{path} is no plain file or folder; a checkpoint must hold its bytes itself")
        found += [Path(folder, name).relative_to(root) for name in names]
    return sorted(found)


def _refuse(error: OSError) -> None:
    raise CommandRejected(f"{error.filename}: {error.strerror}") from error


def _staged(root: Path, file: Path) -> StagedFile:
    path = root / file
    return StagedFile(path=f"shard/{file.as_posix()}", chunks=_unchanged(path), size_bytes=path.stat().st_size)


def _unchanged(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        before = os.fstat(file.fileno())
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
        after = os.fstat(file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise CommandRejected(f"{path} changed while it was copied; commit the folder once it is complete")
