"""Log lines of one attempt on the agent's disk, for ``TailLogs``; a convenience, the topic has them all.

JSON lines in numbered files of bounded size; the oldest files go first. A cursor is ``file:byte``.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trackway_common.errors import CommandRejected
from trackway_common.events import LogLine

FILE_BYTES = 4 << 20
FILES_KEPT = 8
ATTEMPTS_KEPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SpooledLine:
    """A line, whose it is, and where reading goes on after it."""

    rank: int
    line: LogLine
    cursor: str


class LogSpool:
    """Of one attempt; one writer, any number of readers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._out: BinaryIO | None = None
        self._newest: dict[int, int] = {}
        """Per rank the last record number that was written."""

    def append(self, rank: int, line: LogLine) -> None:
        """Add a line; one that was added before, by record number, is passed over."""
        out = self._out or self._open()
        if line.record <= self._newest.get(rank, 0):
            return
        self._newest[rank] = line.record
        content = [rank, line.record, line.at_ms, line.stream, line.text, line.step]
        out.write(json.dumps(content, ensure_ascii=False).encode(errors="replace") + b"\n")
        out.flush()
        if out.tell() >= FILE_BYTES:
            self.close()

    def close(self) -> None:
        """Let go of the file; the next line opens another."""
        if self._out is not None:
            self._out.close()
        self._out = None

    def read(self, cursor: str = "") -> Iterator[SpooledLine]:
        """Lines behind the cursor that are there now; from the oldest kept where the cursor's file is gone.

        Raises:
            CommandRejected: the cursor is none of ours.
        """
        number, offset = _parsed(cursor)
        for file in self._files():
            if int(file.stem) >= number:
                yield from _lines(file, offset if int(file.stem) == number else 0)

    def _open(self) -> BinaryIO:
        """Begin a file of its own: the last one may end in half a line."""
        self._newest = {spooled.rank: spooled.line.record for spooled in self.read()}
        files = self._files()
        for old in files[: max(0, len(files) + 1 - FILES_KEPT)]:
            old.unlink(missing_ok=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        number = int(files[-1].stem) + 1 if files else 1
        self._out = (self._folder / f"{number}.jsonl").open("ab")
        return self._out

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("*.jsonl"), key=lambda file: int(file.stem))


class LogSpools:
    """Spools of all attempts of an agent."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def of(self, run_id: str, attempt: int) -> LogSpool:
        """Spool of an attempt; nothing is made before its first line."""
        return LogSpool(self._root / run_id / str(attempt))

    def attempts(self, run_id: str) -> list[int]:
        """Attempts of a run that lines were kept of."""
        return sorted(int(folder.name) for folder in (self._root / run_id).glob("[0-9]*"))

    def forget_old(self) -> None:
        """Remove the spools that were written to longest ago."""
        folders = sorted(self._root.glob("*/[0-9]*"), key=lambda folder: folder.stat().st_mtime)
        for folder in folders[:-ATTEMPTS_KEPT]:
            shutil.rmtree(folder, ignore_errors=True)


def _lines(file: Path, offset: int) -> Iterator[SpooledLine]:
    try:
        opened = file.open("rb")
    except FileNotFoundError:
        return  # The oldest file went while its reader was on the way.
    with opened:
        opened.seek(offset)
        for raw in opened:
            if not raw.endswith(b"\n"):
                return  # Half a line: its writer is not done with it, or died there.
            offset += len(raw)
            rank, record, at_ms, stream, text, step = json.loads(raw)
            line = LogLine(record=record, at_ms=at_ms, stream=stream, text=text, step=step)
            yield SpooledLine(rank=rank, line=line, cursor=f"{file.stem}:{offset}")


def _parsed(cursor: str) -> tuple[int, int]:
    if not cursor:
        return 0, 0
    number, _, offset = cursor.partition(":")
    if not number.isdigit() or not offset.isdigit():
        raise CommandRejected(f"{cursor!r} is no cursor; use the one of the last line you got", reason="BAD_CURSOR")
    return int(number), int(offset)
