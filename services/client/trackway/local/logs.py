"""Reads the children's logs."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from trackway_common.errors import NotFound

from trackway.local.state import StateFolder

POLL_S = 0.2


def read_log(folder: StateFolder, name: str, *, lines: int, follow: bool) -> Iterator[str]:
    """Yield the last lines of a child's log, and with ``follow`` those that come, for ever.

    Raises:
        NotFound: there is no such log.
    """
    file = folder.log_of(name)
    known = sorted(path.stem for path in folder.logs.glob("*.log"))
    if name not in known:
        there = f"there are: {', '.join(known)}" if known else f"no stack was started in {folder.root}"
        raise NotFound(f"no log of {name!r}; {there}")
    return _read(file, lines, follow)


def last_lines(file: Path, count: int) -> list[str]:
    """Return the last lines of a file; none when it is missing."""
    try:
        with file.open(encoding="utf-8", errors="replace") as log:
            return [line.rstrip("\n") for line in deque(log, maxlen=count)]
    except FileNotFoundError:
        return []


def _read(file: Path, lines: int, follow: bool) -> Iterator[str]:
    with file.open(encoding="utf-8", errors="replace") as log:
        yield from [line.rstrip("\n") for line in deque(log, maxlen=lines)]
        if follow:
            yield from _follow(file, log)


def _follow(file: Path, log: IO[str]) -> Iterator[str]:
    part = ""
    while True:
        part += log.readline()
        if part.endswith("\n"):
            yield part.rstrip("\n")
            part = ""
        elif _was_set_aside(file, log):
            yield from _read(file, 1 << 30, follow=True)
        else:
            time.sleep(POLL_S)


def _was_set_aside(file: Path, log: IO[str]) -> bool:
    try:
        return file.stat().st_ino != os.fstat(log.fileno()).st_ino
    except FileNotFoundError:
        return False
