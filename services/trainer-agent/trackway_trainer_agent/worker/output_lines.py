"""Cuts a trainer's output into lines that can be stored: whatever bytes it prints, in whatever pieces."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

MAX_LINE_BYTES = 4096
READ_BYTES = 65536
LineSink = Callable[[str], None]


class LineSplitter:
    """Lines out of a byte stream. Keeps at most one cut line in memory, also when no newline ever comes."""

    def __init__(self) -> None:
        self._open = bytearray()
        self._cut_bytes = 0

    def feed(self, data: bytes) -> list[str]:
        """The lines that these bytes complete."""
        *complete, rest = data.split(b"\n")
        lines = []
        for part in complete:
            self._extend(part)
            lines.append(self._take())
        self._extend(rest)
        return lines

    def finish(self) -> list[str]:
        """The last line, when it had no newline."""
        return [self._take()] if self._open else []

    def _extend(self, part: bytes) -> None:
        # A progress bar redraws its line after a carriage return: only what stands there last is the line.
        _, returned, visible = part.rstrip(b"\r").rpartition(b"\r")
        if returned:
            self._open.clear()
            self._cut_bytes = 0
        room = MAX_LINE_BYTES - len(self._open)
        self._open += visible[:room]
        self._cut_bytes += max(0, len(visible) - room)

    def _take(self) -> str:
        text = self._open.decode("utf-8", "backslashreplace")
        if self._cut_bytes:
            text += f" … [{self._cut_bytes} bytes cut]"
        self._open.clear()
        self._cut_bytes = 0
        return text


def read_lines(descriptor: int, sink: LineSink) -> threading.Thread:
    """Start a thread that hands every line to ``sink`` until the last writer has closed the pipe."""

    def run() -> None:
        splitter = LineSplitter()
        while data := os.read(descriptor, READ_BYTES):
            for line in splitter.feed(data):
                sink(line)
        for line in splitter.finish():
            sink(line)
        os.close(descriptor)

    reader = threading.Thread(target=run, name="trainer-output", daemon=True)
    reader.start()
    return reader
