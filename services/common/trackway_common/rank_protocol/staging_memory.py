"""Shared memory that outlives the trainer: made and owned by the actor, written by the SDK."""

from __future__ import annotations

import mmap
import os
import threading

MADV_POPULATE_WRITE = 23
"""Linux 5.14; not in Python's ``mmap`` yet."""
STEP_BYTES = 4 * 2**20
"""``madvise`` holds the interpreter's lock: a few ms at a time."""
ROUND_BYTES = 2 * 2**20


def create_staging() -> int:
    """Descriptor of an empty memory file."""
    return os.memfd_create("trackway-staging", os.MFD_CLOEXEC)


def grow_staging(descriptor: int, size_bytes: int) -> int:
    """Make it at least this large; the size that it has now. It never shrinks: a mapping would fault."""
    size = os.fstat(descriptor).st_size
    if size_bytes > size:
        size = -(-size_bytes // ROUND_BYTES) * ROUND_BYTES
        os.ftruncate(descriptor, size)
    return size


def map_staging(descriptor: int, size_bytes: int) -> mmap.mmap:
    """Map it, and fault its pages in behind the caller's back: the first capture is then as fast as any."""
    memory = mmap.mmap(descriptor, size_bytes, flags=mmap.MAP_SHARED)
    threading.Thread(target=_populate, args=(memory,), name="populate-staging", daemon=True).start()
    return memory


def _populate(memory: mmap.mmap) -> None:
    try:
        for start in range(0, len(memory), STEP_BYTES):
            memory.madvise(MADV_POPULATE_WRITE, start, min(STEP_BYTES, len(memory) - start))
    except (OSError, ValueError):
        return  # An older kernel, too little memory, or unmapped meanwhile: pages come when they are touched.
