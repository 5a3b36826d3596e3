"""Data files of a checkpoint: hashed while they are written, checked while they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import blake3
import xxhash

from trackway_common.checkpoint.records import FileRecord
from trackway_common.errors import CommandRejected
from trackway_common.object_store.port import CHUNK_BYTES, Bytes, ObjectStore, StorageFull

B = TypeVar("B", bound=Bytes)

HEADROOM = 1.05
"""Room wanted per byte: metadata, and what others write meanwhile."""
RESERVE_BYTES = 32 << 20
"""Room that stays free after a save, so that logs and receipts can still be written."""
MAX_TENSOR_HEADER_BYTES = 100_000_000
"""Limit of the safetensors format; a longer header is an attack or damage."""


class HashPair:
    """xxh3-64 in the calling thread, BLAKE3 in a second one: the stronger hash is free where a core is idle."""

    def __init__(self, executor: ThreadPoolExecutor) -> None:
        self._executor = executor
        self._xxh3 = xxhash.xxh3_64()
        self._blake3 = blake3.blake3()
        self._pending: Future[object] | None = None
        self.size_bytes = 0

    def update(self, chunk: Bytes) -> None:
        """Take the next piece, which must not change until the next call."""
        self._wait()
        self._pending = self._executor.submit(self._blake3.update, chunk)
        self._xxh3.update(chunk)
        self.size_bytes += memoryview(chunk).nbytes

    def record(self, path: str) -> FileRecord:
        """What was seen, as the file of that path."""
        self._wait()
        return FileRecord(
            path=path, size_bytes=self.size_bytes, xxh3_64=self._xxh3.hexdigest(), blake3=self._blake3.hexdigest()
        )

    def _wait(self) -> None:
        if self._pending is not None:
            self._pending.result()


def preflight(store: ObjectStore, size_bytes: int, *, reserve_bytes: int = RESERVE_BYTES) -> None:
    """Raise ``StorageFull`` now when the store has no room for that many bytes, not when most are written."""
    free = store.free_bytes()
    wanted = int(size_bytes * HEADROOM) + reserve_bytes
    if free is not None and free < wanted:
        raise StorageFull(f"a checkpoint of {size_bytes} bytes needs {wanted} free, {free} are; free some space")


def write_file(store: ObjectStore, prefix: str, path: str, chunks: Iterable[Bytes], *, size_bytes: int) -> FileRecord:
    """Write a new file of the checkpoint at ``prefix``; its bytes are durable on return, its name after ``settle``.

    Raises:
        AlreadyExists: another writer was here; nonces are never used twice.
        StorageFull, Unavailable: nothing is left; abandon the save.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="blake3") as executor:
        hashes = HashPair(executor)
        store.create(f"{prefix}/{path}", _hashed(chunks, hashes), size_bytes=size_bytes)
        return hashes.record(path)


def checked_chunks(store: ObjectStore, prefix: str, record: FileRecord) -> Iterator[bytes]:
    """Yield the file piece by piece.

    Raises:
        NotFound: it is gone.
        CommandRejected: ``CHECKPOINT_DAMAGED``, after the last piece: use nothing before the end was reached.
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="blake3") as executor:
        hashes = HashPair(executor)
        yield from _hashed(_bounded(store, prefix, record), hashes)
        if hashes.record(record.path) != record:
            raise _damaged(record, f"its {hashes.size_bytes} bytes do not hash to what was committed")


def read_file(store: ObjectStore, prefix: str, record: FileRecord) -> bytearray:
    """Return the file's checked bytes; raises as ``checked_chunks`` does."""
    buffer = bytearray(record.size_bytes)
    read_into(store, prefix, record, memoryview(buffer))
    return buffer


def read_into(store: ObjectStore, prefix: str, record: FileRecord, target: memoryview) -> None:
    """Fill a buffer of exactly the file's size with its checked bytes; raises as ``checked_chunks`` does."""
    done = 0
    for chunk in checked_chunks(store, prefix, record):
        target[done : done + len(chunk)] = chunk
        done += len(chunk)


def pieces(buffer: Bytes, chunk_bytes: int = CHUNK_BYTES) -> Iterator[memoryview]:
    """Views of a buffer, piece by piece, without a copy."""
    view = memoryview(buffer).cast("B")
    for start in range(0, len(view), chunk_bytes):
        yield view[start : start + chunk_bytes]


def check_tensor_header(store: ObjectStore, prefix: str, record: FileRecord) -> None:
    """Raise ``CHECKPOINT_DAMAGED`` when a safetensors file announces a header that it cannot have."""
    start = next(store.read(f"{prefix}/{record.path}", chunk_bytes=8), b"")
    header_bytes = int.from_bytes(start, "little")
    if len(start) < 8 or not 2 <= header_bytes <= min(MAX_TENSOR_HEADER_BYTES, record.size_bytes - 8):
        raise _damaged(record, f"its header claims {header_bytes} bytes")


def _hashed(chunks: Iterable[B], hashes: HashPair) -> Iterator[B]:
    for chunk in chunks:
        hashes.update(chunk)
        yield chunk


def _bounded(store: ObjectStore, prefix: str, record: FileRecord) -> Iterator[bytes]:
    """Refuse a file of another size before reading it: it may be endless."""
    size = store.size(f"{prefix}/{record.path}")
    if size != record.size_bytes:
        raise _damaged(record, f"it has {size} bytes, {record.size_bytes} were committed")
    left = size
    for chunk in store.read(f"{prefix}/{record.path}"):
        left -= len(chunk)
        if left < 0:
            raise _damaged(record, f"it grew beyond its {size} bytes while it was read")
        yield chunk


def _damaged(record: FileRecord, why: str) -> CommandRejected:
    return CommandRejected(f"{record.path} is damaged: {why}", reason="CHECKPOINT_DAMAGED")
