"""Blobs: immutable bytes found by their digest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from trackway_common.errors import CommandRejected, CorruptLog, NotFound
from trackway_common.ids import Digest
from trackway_common.object_store.port import CHUNK_BYTES, AlreadyExists, Bytes, ObjectStore

_FOLDER = "blobs/sha256"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")


class BlobStore:
    """Content-addressed blobs of an object store; may block on storage."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def put(self, data: Bytes) -> Digest:
        """Store the bytes durably and return ``sha256:<hex>``; the same bytes again change nothing."""
        digest = Digest("sha256:" + hashlib.sha256(data).hexdigest())
        self._create(digest, (data,), memoryview(data).nbytes)
        return digest

    def put_file(self, path: Path) -> Digest:
        """Store a file's content in constant memory.

        Raises:
            CommandRejected: the file changed while it was read.
        """
        digest = Digest("sha256:" + _file_sha256(path))
        self._create(digest, _unchanged(path, digest), path.stat().st_size)
        return digest

    def get(self, digest: str) -> bytes:
        """Return the blob.

        Raises:
            NotFound: no such blob.
            CorruptLog: what is stored is not what the digest says.
        """
        return b"".join(self.read(digest))

    def read(self, digest: str) -> Iterator[bytes]:
        """Yield the blob piece by piece; raises ``CorruptLog`` after the last piece when the bytes were damaged."""
        seen = hashlib.sha256()
        for chunk in self._store.read(_key(digest)):
            seen.update(chunk)
            yield chunk
        if digest != "sha256:" + seen.hexdigest():
            raise CorruptLog(f"blob {digest} is damaged in the store; restore it from a copy")

    def has(self, digest: str) -> bool:
        """Tell whether a blob of this digest is stored."""
        try:
            self._store.size(_key(digest))
        except NotFound:
            return False
        return True

    def path(self, digest: str) -> Path | None:
        """Where the blob lies on this machine, unverified; None where the store is elsewhere."""
        return self._store.local_path(_key(digest))

    def _create(self, digest: Digest, chunks: Iterable[Bytes], size_bytes: int) -> None:
        if not self.has(digest):
            with suppress(AlreadyExists):  # by another writer, since: of the same bytes, as their digest is the name
                self._store.create(_key(digest), chunks, size_bytes=size_bytes)
        # Also for a blob that was there: who wrote it may have died before its name was durable.
        self._store.settle(_FOLDER)
        self._store.anchor(_FOLDER)


def _key(digest: str) -> str:
    match = _DIGEST.fullmatch(digest)
    if match is None:
        raise CommandRejected(f"{digest!r} is no digest; write sha256: and 64 hex digits")
    return f"{_FOLDER}/{match[1]}"


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unchanged(path: Path, digest: str) -> Iterator[bytes]:
    seen = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            seen.update(chunk)
            yield chunk
    if digest != "sha256:" + seen.hexdigest():
        raise CommandRejected(f"{path} changed while it was read; try again when nobody writes to it")
