"""Objects as files of a local (or NFS) folder.

A new object is written under a hidden name, fsynced, then linked to its own name: ``link(2)`` fails when the name
is taken, where ``rename(2)`` would replace silently. The folder is fsynced before anyone is told.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from trackway_common.errors import CommandRejected, NotFound
from trackway_common.object_store.folders import opened_file, opened_folder, storage_errors, write_hidden
from trackway_common.object_store.port import CHUNK_BYTES, HIDDEN_PREFIX, Bytes, key_parts

_STALE_AFTER_S = 3600
"""A hidden file this old has no writer any more: no single write takes an hour."""


class LocalObjectStore:
    """Objects below one folder; any number of processes may use it at once."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        # Folders (with their inode) whose own names are known to be durable, up to the root.
        self._anchored: set[tuple[tuple[str, ...], int]] = set()

    def put_if_absent(self, key: str, data: Bytes) -> None:
        self.create(key, (data,), size_bytes=memoryview(data).nbytes)
        parent = "/".join(key_parts(key)[:-1])
        if parent:
            self.settle(parent)
            self.anchor(parent)

    def create(self, key: str, chunks: Iterable[Bytes], *, size_bytes: int) -> None:
        *parent, name = key_parts(key)
        with storage_errors(key), opened_folder(self.root, tuple(parent), create=True) as folder:
            hidden = write_hidden(folder, chunks, size_bytes, durable=True)
            try:
                os.link(hidden, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            finally:
                os.unlink(hidden, dir_fd=folder)

    def settle(self, prefix: str) -> None:
        with storage_errors(prefix):
            self._sync_folder(key_parts(prefix))

    def anchor(self, prefix: str) -> None:
        parts = key_parts(prefix)
        fresh: set[tuple[tuple[str, ...], int]] = set()
        with storage_errors(prefix):
            while parts and (identity := self._identity(parts)) not in self._anchored:
                self._sync_folder(parts[:-1])
                fresh.add(identity)
                parts = parts[:-1]
        self._anchored |= fresh

    def put(self, key: str, data: Bytes) -> None:
        *parent, name = key_parts(key)
        with storage_errors(key), opened_folder(self.root, tuple(parent), create=True) as folder:
            hidden = write_hidden(folder, (data,), memoryview(data).nbytes, durable=False)
            os.rename(hidden, name, src_dir_fd=folder, dst_dir_fd=folder)

    def get(self, key: str, *, limit_bytes: int | None = None) -> bytes:
        *parent, name = key_parts(key)
        with (
            storage_errors(key),
            opened_folder(self.root, tuple(parent)) as folder,
            opened_file(folder, name) as fd,
            open(fd, "rb", closefd=False) as file,
        ):
            size = os.fstat(fd).st_size
            if limit_bytes is not None and size > limit_bytes:
                raise CommandRejected(f"{key} has {size} bytes, more than the {limit_bytes} that may be read of it")
            return file.read()

    def read(self, key: str, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        *parent, name = key_parts(key)
        with (
            storage_errors(key),
            opened_folder(self.root, tuple(parent)) as folder,
            opened_file(folder, name) as fd,
        ):
            while chunk := os.read(fd, chunk_bytes):
                yield chunk

    def size(self, key: str) -> int:
        *parent, name = key_parts(key)
        with (
            storage_errors(key),
            opened_folder(self.root, tuple(parent)) as folder,
            opened_file(folder, name) as fd,
        ):
            return os.fstat(fd).st_size

    def names(self, prefix: str, *, start_after: str = "") -> list[str]:
        try:
            with storage_errors(prefix), opened_folder(self.root, key_parts(prefix)) as folder:
                found = [_listed_name(entry) for entry in os.scandir(folder)]
        except NotFound:
            return []
        return sorted(name for name in found if name > start_after and not name.startswith(HIDDEN_PREFIX))

    def delete(self, key: str) -> None:
        *parent, name = key_parts(key)
        try:
            with storage_errors(key), opened_folder(self.root, tuple(parent)) as folder:
                os.unlink(name, dir_fd=folder)
        except NotFound:
            return

    def move(self, prefix: str, to_prefix: str) -> None:
        *parent, name = key_parts(prefix)
        *to_parent, to_name = key_parts(to_prefix)
        with (
            storage_errors(prefix),
            opened_folder(self.root, tuple(parent)) as folder,
            opened_folder(self.root, tuple(to_parent), create=True) as to_folder,
        ):
            os.rename(name, to_name, src_dir_fd=folder, dst_dir_fd=to_folder)
        self._forget_anchors(key_parts(prefix))

    def delete_below(self, prefix: str) -> None:
        *parent, name = key_parts(prefix)
        try:
            with storage_errors(prefix), opened_folder(self.root, tuple(parent)) as folder:
                shutil.rmtree(name, dir_fd=folder)
        except NotFound:
            return
        self._forget_anchors(key_parts(prefix))

    def sweep(self, prefix: str) -> None:
        try:
            with storage_errors(prefix), opened_folder(self.root, key_parts(prefix)) as folder:
                for entry in os.scandir(folder):
                    if entry.name.startswith(HIDDEN_PREFIX) and _is_stale(entry):
                        os.unlink(entry.name, dir_fd=folder)
        except NotFound:
            return

    def free_bytes(self) -> int | None:
        with storage_errors(str(self.root)):
            usage = os.statvfs(self.root)
        return usage.f_bavail * usage.f_frsize

    def local_path(self, key: str) -> Path | None:
        return self.root.joinpath(*key_parts(key))

    def _sync_folder(self, parts: tuple[str, ...]) -> None:
        with opened_folder(self.root, parts) as folder:
            os.fsync(folder)

    def _forget_anchors(self, parts: tuple[str, ...]) -> None:
        """A folder made again may get the freed inode number, and is a new one all the same."""
        self._anchored = {anchor for anchor in self._anchored if anchor[0][: len(parts)] != parts}

    def _identity(self, parts: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        """The inode tells a folder from one of the same name that was deleted and made again."""
        with opened_folder(self.root, parts) as folder:
            return parts, os.fstat(folder).st_ino


def _listed_name(entry: os.DirEntry[str]) -> str:
    return entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name


def _is_stale(entry: os.DirEntry[str]) -> bool:
    return entry.stat(follow_symlinks=False).st_mtime < time.time() - _STALE_AFTER_S
