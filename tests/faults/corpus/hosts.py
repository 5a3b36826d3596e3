"""Hands on the machine: memory cgroups (v1 and v2), mounts. Everything is undone when the scene ends."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil
from trackway_common.oom_counter import CGROUP_ROOT

from tests.support.stack import wait_until

GONE_S = 10.0


class MemoryCgroup:
    """A cgroup of its own with a limit; processes that are moved into it are charged from then on."""

    def __init__(self, limit_bytes: int) -> None:
        first = CGROUP_ROOT / "memory"
        v1 = first.is_dir()
        self.folder = (first if v1 else CGROUP_ROOT) / f"trackway-corpus-{uuid.uuid4().hex[:8]}"
        self.folder.mkdir()
        limit = self.folder / ("memory.limit_in_bytes" if v1 else "memory.max")
        limit.write_text(str(limit_bytes))

    def take(self, *processes: psutil.Process) -> None:
        """Move processes in."""
        for process in processes:
            (self.folder / "cgroup.procs").write_text(str(process.pid))

    def remove(self) -> None:
        """Wait until it is empty, and remove it."""
        wait_until(lambda: not (self.folder / "cgroup.procs").read_text().split(), GONE_S, what="the cgroup to empty")
        self.folder.rmdir()


def cgroups_are_writable() -> bool:
    """Whether this process may make memory cgroups."""
    try:
        MemoryCgroup(1 << 30).remove()
    except OSError:
        return False
    return True


def small_disk(cleanup: ExitStack, folder: Path, size: str = "1m") -> None:
    """Mount a tmpfs of that size."""
    folder.mkdir()
    _mount(cleanup, folder, "-t", "tmpfs", "-o", f"size={size}", "tmpfs")


def give_eio(cleanup: ExitStack, file: Path) -> None:
    """Have every read of a file answer EIO, like a disk that lost a block: address 0 of a process is never mapped."""
    holder = subprocess.Popen(["sleep", "600"])
    cleanup.callback(_end(holder))
    _mount(cleanup, file, "--bind", f"/proc/{holder.pid}/mem")


def _mount(cleanup: ExitStack, target: Path, *options: str) -> None:
    subprocess.run(["mount", *options, str(target)], check=True, capture_output=True)
    cleanup.callback(subprocess.run, ["umount", "-l", str(target)], check=False, capture_output=True)


def _end(process: subprocess.Popen[bytes]) -> Callable[[], None]:
    def end() -> None:
        process.kill()
        process.wait()

    return end
