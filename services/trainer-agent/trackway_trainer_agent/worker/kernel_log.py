"""What the kernel said about a trainer's processes, or about a device, while the trainer ran."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable
from pathlib import Path

KMSG = Path("/dev/kmsg")
LINES_KEPT = 20
RECORDS_READ = 20_000
"""A kernel's whole ring buffer, several times over."""
RECORD_BYTES = 8192
_PID = re.compile(r"(?:\bpid[= ]|\bprocess |\[)(\d+)\b")
_DEVICE = re.compile(r"NVRM: Xid|amdgpu.*(ring|reset|hang)|Hardware Error|I/O error, dev")


class KernelLog:
    """From the moment that it is made."""

    def __init__(self, path: Path = KMSG) -> None:
        self._path = path
        self._since_us = time.monotonic_ns() // 1000

    def lines(self, pids: Iterable[int]) -> tuple[str, ...]:
        """The last lines that concern these processes or a device; none where the log can't be read."""
        known = set(pids)
        found = [text for at_us, text in _records(self._path) if at_us >= self._since_us and _concerns(text, known)]
        return tuple(found[-LINES_KEPT:])


def _concerns(text: str, pids: set[int]) -> bool:
    return bool(_DEVICE.search(text)) or any(int(number) in pids for number in _PID.findall(text))


def _records(path: Path) -> list[tuple[int, str]]:
    """Time in microseconds since boot, and text (Documentation/ABI/testing/dev-kmsg)."""
    try:
        log = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return []
    records = []
    try:
        for _ in range(RECORDS_READ):
            try:
                record = os.read(log, RECORD_BYTES)
            except BrokenPipeError:
                continue  # Overwritten while it was read: the next one is whole.
            except OSError:
                break  # Nothing more, or not for us.
            if not record:
                break
            prefix, _, text = record.decode("utf-8", "replace").partition(";")
            fields = prefix.split(",")
            if len(fields) >= 3 and fields[2].isdigit():
                records.append((int(fields[2]), text.partition("\n")[0]))
    finally:
        os.close(log)
    return records
