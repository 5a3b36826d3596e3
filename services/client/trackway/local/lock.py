"""One supervisor a state folder: a lock that the kernel drops with its holder."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import IO

from trackway_common.errors import Unavailable

KERNEL_LOCKS = Path("/proc/locks")
GLANCE_S = 0.5
"""Whoever asks for the holder has the lock, shared, for an instant."""
POLL_S = 0.02


class Held(Unavailable):
    """Another process holds the folder."""

    def __init__(self, path: Path, pid: int | None) -> None:
        super().__init__(f"{path.parent} is held by {f'process {pid}' if pid else 'another process'}")
        self.pid = pid


def acquire(path: Path) -> IO[str]:
    """Take the lock and write this process's pid into it; it is held while the file stays open.

    Raises:
        Held: somebody else has it, and not just to look who has.
    """
    file = path.open("a+", encoding="ascii")
    deadline = time.monotonic() + GLANCE_S
    while not _locked(file):
        if time.monotonic() > deadline:
            pid = _pid_of_holder(file)
            file.close()
            raise Held(path, pid)
        time.sleep(POLL_S)
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def holder(path: Path) -> int | None:
    """Return the pid of the process that holds the lock (0: it didn't say); None when it is free."""
    try:
        file = path.open("r", encoding="ascii")
    except FileNotFoundError:
        return None
    with file:
        try:
            # Shared, so that two who look at once don't take each other for the holder.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _pid_of_holder(file) or 0
    return None


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid_of_holder(file: IO[str]) -> int | None:
    """As the kernel knows it, since the file tells only of supervisors; else, as the file does."""
    inode = f":{os.fstat(file.fileno()).st_ino} "
    for line in KERNEL_LOCKS.read_text().splitlines():
        fields = line.split()
        if inode in line and fields[1] == "FLOCK" and fields[3] == "WRITE":  # a waiter's second field is an arrow
            return int(fields[4])
    file.seek(0)
    text = file.read(16).strip()
    return int(text) if text.isdigit() else None
