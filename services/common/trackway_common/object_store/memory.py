"""Objects in memory, for tests: the same promises without a disk."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from trackway_common.errors import CommandRejected, NotFound
from trackway_common.object_store.port import CHUNK_BYTES, AlreadyExists, Bytes, key_parts


class InMemoryObjectStore:
    """Objects of one process; threads may share it."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, ...], bytes] = {}
        self._lock = threading.Lock()

    def put_if_absent(self, key: str, data: Bytes) -> None:
        self.create(key, (data,), size_bytes=memoryview(data).nbytes)

    def create(self, key: str, chunks: Iterable[Bytes], *, size_bytes: int) -> None:
        parts = key_parts(key)
        data = b"".join(bytes(chunk) for chunk in chunks)
        if len(data) != size_bytes:
            raise CommandRejected(f"{len(data)} bytes were given where {size_bytes} were announced")
        with self._lock:
            if parts in self._objects:
                raise AlreadyExists(key)
            self._objects[parts] = data

    def settle(self, prefix: str) -> None:
        if not any(True for _ in self._below(key_parts(prefix))):
            raise NotFound(f"{prefix} does not exist")

    def anchor(self, prefix: str) -> None:
        self.settle(prefix)

    def put(self, key: str, data: Bytes) -> None:
        with self._lock:
            self._objects[key_parts(key)] = bytes(data)

    def get(self, key: str, *, limit_bytes: int | None = None) -> bytes:
        data = self._object(key)
        if limit_bytes is not None and len(data) > limit_bytes:
            raise CommandRejected(f"{key} has {len(data)} bytes, more than the {limit_bytes} that may be read of it")
        return data

    def read(self, key: str, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        data = self._object(key)
        for start in range(0, len(data), chunk_bytes):
            yield data[start : start + chunk_bytes]

    def size(self, key: str) -> int:
        return len(self._object(key))

    def names(self, prefix: str, *, start_after: str = "") -> list[str]:
        parts = key_parts(prefix)
        depth = len(parts)
        found = {key[depth] + ("/" if len(key) > depth + 1 else "") for key in self._below(parts)}
        return sorted(name for name in found if name > start_after)

    def delete(self, key: str) -> None:
        with self._lock:
            self._objects.pop(key_parts(key), None)

    def move(self, prefix: str, to_prefix: str) -> None:
        parts, to_parts = key_parts(prefix), key_parts(to_prefix)
        with self._lock:
            moving = self._below(parts)
            if not moving:
                raise NotFound(f"{prefix} does not exist")
            for key in moving:
                self._objects[to_parts + key[len(parts) :]] = self._objects.pop(key)

    def delete_below(self, prefix: str) -> None:
        with self._lock:
            for key in self._below(key_parts(prefix)):
                del self._objects[key]

    def sweep(self, prefix: str) -> None:
        key_parts(prefix)  # Nothing is ever left behind here; only a bad prefix is refused.

    def free_bytes(self) -> int | None:
        return None

    def local_path(self, key: str) -> Path | None:
        key_parts(key)
        return None

    def _object(self, key: str) -> bytes:
        try:
            return self._objects[key_parts(key)]
        except KeyError:
            raise NotFound(f"{key} does not exist") from None

    def _below(self, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [key for key in list(self._objects) if key[: len(parts)] == parts and len(key) > len(parts)]
