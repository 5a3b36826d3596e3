"""Stage a plain folder of files as a checkpoint, to be committed by the same protocol; and take it out again.

For trainers that write their own checkpoints: JAX, XGBoost, Hugging Face and the like.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trackway_common.checkpoint.files import checked_chunks
from trackway_common.checkpoint.layout import CheckpointName, checkpoint_prefix
from trackway_common.checkpoint.manifest import Manifest
from trackway_common.checkpoint.save import RankSave, StagedFile, write_rank
from trackway_common.errors import CommandRejected
from trackway_common.object_store.port import CHUNK_BYTES, ObjectStore

LAYOUT = "directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectorySave:
    """A folder to be staged, and what it was made from."""

    path: Path
    run_id: str
    name: CheckpointName
    config_digest: str = ""
    dataset_digests: tuple[str, ...] = ()
    code_digest: str = ""


def stage_directory(store: ObjectStore, save: DirectorySave) -> None:
    """Copy the folder, durable, and write its receipt; the checkpointer commits it as it commits every checkpoint.

    Raises:
        CommandRejected: the folder is empty, holds a symbolic link, or changed meanwhile.
    """
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
