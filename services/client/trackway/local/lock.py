"""One supervisor a state folder: a lock that the kernel drops with its holder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from trackway_common.errors import Unavailable


class Held(Unavailable):
    """Another process holds the folder."""

    def __init__(self, path: Path, pid: int | None) -> None:
        super().__init__(f"{path.parent} is held by {f'process {pid}' if pid else 'another process'}")
        self.pid = pid


def acquire(path: Path) -> IO[str]:
    """Take the lock and write this process's pid into it; it is held while the file stays open.

    Raises:
        Held: somebody else has it.
    """
    file = path.open("a+", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = _pid_in(file)
        file.close()
        raise Held(path, pid) from None
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
            return _pid_in(file) or 0
    return None


def _pid_in(file: IO[str]) -> int | None:
    file.seek(0)
    text = file.read(16).strip()
    return int(text) if text.isdigit() else None
