"""What a node can tell about a trainer's end besides its exit status."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from trackway_trainer_agent.worker.records import FilesystemState

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - only asked for its room


def filesystem(mount: Path, *, named: Path | None = None) -> FilesystemState | None:
    """Room on the filesystem that holds this folder; ``None`` where it can't be asked."""
    try:
        seen = os.statvfs(mount)
    except OSError:
        return None
    return FilesystemState(
        mount=str(named or mount), free_bytes=seen.f_bavail * seen.f_frsize, total_bytes=seen.f_blocks * seen.f_frsize
    )


def filesystems(folders: Iterable[Path]) -> tuple[FilesystemState, ...]:
    """Those that can be asked."""
    return tuple(seen for folder in folders if (seen := filesystem(folder)) is not None)


def shared_memory_of(pid: int) -> FilesystemState | None:
    """``/dev/shm`` as this process sees it: a container has its own."""
    return filesystem(Path(f"/proc/{pid}/root") / SHARED_MEMORY.relative_to("/"), named=SHARED_MEMORY)
