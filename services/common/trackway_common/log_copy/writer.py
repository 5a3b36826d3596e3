"""Writes a copy under another name and renames it when it is whole: a folder by its own name is never half a log."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from trackway_common.errors import CommandRejected, FieldViolation
from trackway_common.log_copy.index import Entry, IndexWriter, RunLine
from trackway_common.log_copy.manifest import INDEX, MANIFEST, File, Manifest, Segment, segment_path, write_manifest
from trackway_common.log_copy.segment import Copied, write_frame
from trackway_common.object_store.blobs import BlobStore
from trackway_common.object_store.local import LocalObjectStore

_DIGEST = re.compile(rb"sha256:[0-9a-f]{64}")
BUFFER_BYTES = 1 << 20


class LogCopyWriter:
    """One copy in the making; used inside ``writing``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.digests: set[str] = set()
        """Every digest that a record names."""
        self.heartbeats: dict[tuple[str, int], tuple[int, int]] = {}
        """By run and attempt: time in milliseconds and step of what was heard last."""
        self._index = IndexWriter(folder / INDEX)
        self._files: dict[tuple[str, int], BinaryIO] = {}
        self._sizes: dict[tuple[str, int], int] = {}
        self._records: dict[tuple[str, int], int] = {}
        self._segments: list[tuple[str, int, int, int]] = []

    def open_segment(self, topic: str, partition: int, first_offset: int, end_offset: int) -> None:
        """Begin the file of one partition; it is there, too, when nothing is in it."""
        (self.folder / topic).mkdir(exist_ok=True)
        key = (topic, partition)
        self._files[key] = (self.folder / segment_path(topic, partition)).open("wb", buffering=BUFFER_BYTES)
        self._sizes[key] = self._records[key] = 0
        self._segments.append((topic, partition, first_offset, end_offset))

    def add(self, root: str, stream: str, copied: Copied) -> None:
        """Append one record to its partition's file and to the index."""
        record = copied.record
        key = (record.topic, record.partition)
        position = self._sizes[key]
        size = write_frame(self._files[key], copied)
        self._sizes[key] += size
        self._records[key] += 1
        self.digests.update(digest.decode() for digest in _DIGEST.findall(record.value))
        entry = Entry(
            topic=record.topic,
            partition=record.partition,
            position=position,
            size=size,
            offset=record.offset,
            standing=copied.standing,
        )
        self._index.add(root, stream, entry)

    @property
    def blobs(self) -> BlobStore:
        """Where blobs of the copy go: laid out as in the object store."""
        return BlobStore(LocalObjectStore(self.folder))

    def seal(self, runs: list[RunLine]) -> None:
        """Close every file; nothing more is added."""
        heard = ((run_id, attempt, *seen) for (run_id, attempt), seen in sorted(self.heartbeats.items()))
        self._index.close(runs, heard)
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
            file.close()

    def segments(self) -> tuple[Segment, ...]:
        """What was written, partition by partition."""
        return tuple(
            Segment(
                topic=topic,
                partition=partition,
                path=segment_path(topic, partition),
                first_offset=first,
                end_offset=end,
                records=self._records[topic, partition],
            )
            for topic, partition, first, end in self._segments
        )


@contextmanager
def writing(folder: Path) -> Iterator[Path]:
    """Give the folder that a copy is written in; it becomes ``folder`` once ``publish`` was called.

    Raises:
        CommandRejected: something is at ``folder``, it can't be written, or another process writes this copy now.
    """
    refuse_occupied(folder)
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir(exist_ok=True)
    except OSError as error:
        raise _refused(f"{error.filename} can't be made ({error.strerror}); choose another folder") from error
    held = os.open(partial, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            # The kernel lets go of it when the process dies, so a leftover is told from one that is being written.
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise _refused(f"another export writes {folder} now; wait for it or choose another folder") from error
        _empty(partial)
        with _cleaned_up(partial, folder):
            yield partial
    finally:
        os.close(held)


@contextmanager
def _cleaned_up(partial: Path, folder: Path) -> Iterator[None]:
    """A failure leaves nothing, above all not a full disk; only a killed process leaves its half copy."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        _remove(partial)
        raise _refused(f"{folder} can't be written ({error}); nothing was kept: choose another place") from error
    except BaseException:  # whatever it was, also an interrupt: the copy is no good
        _remove(partial)
        raise


def publish(partial: Path, folder: Path, manifest: Manifest) -> str:
    """Make the copy durable and give it its name; returns the digest of its manifest."""
    data = write_manifest(partial, manifest)
    for path in (partial, *partial.rglob("*")):
        _sync(path)
    refuse_occupied(folder)
    partial.rename(folder)
    _sync(folder.parent)
    return "sha256:" + hashlib.sha256(data).hexdigest()


def refuse_occupied(folder: Path) -> None:
    """Raise CommandRejected unless nothing, or an empty folder, is there."""
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise _refused(f"{folder} is there and not empty; name a new folder: an exported log is never written over")


def files_of(folder: Path) -> tuple[File, ...]:
    """Every file below the folder with its digest, but the manifest."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return tuple(_file(path, folder) for path in found if path.name != MANIFEST or path.parent != folder)


def _file(path: Path, folder: Path) -> File:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return File(path=str(path.relative_to(folder)), size_bytes=path.stat().st_size, sha256=digest)


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _remove(partial: Path) -> None:
    """Remove the half copy; what can't be removed is left for the next export."""
    shutil.rmtree(partial, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refused(description: str) -> CommandRejected:
    violation = FieldViolation(field="DIR", description=description)
    return CommandRejected(description, reason="FOLDER", violations=(violation,))
