"""Open folders below a root without ever following a symbolic link, and write files into them.

Every step goes through a directory descriptor, so a folder that is swapped for a link meanwhile changes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from trackway_common.errors import CommandRejected, NotFound, TrackwayError, Unavailable
from trackway_common.object_store.port import HIDDEN_PREFIX, AlreadyExists, Bytes, StorageFull

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a FIFO that somebody planted must not hang.
_OLD_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ_ONLY_MODE = 0o444


@contextmanager
def opened_folder(root: Path, parts: tuple[str, ...], *, create: bool = False) -> Iterator[int]:
    """Yield a descriptor of the folder below the root, making missing ones when asked."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            fd = _step(fd, part, create=create)
        yield fd
    finally:
        os.close(fd)


@contextmanager
def opened_file(folder: int, name: str) -> Iterator[int]:
    """Yield a descriptor for reading a plain file of the folder."""
    fd = os.open(name, _OLD_FILE, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise CommandRejected(f"{name} is not a plain file")
        yield fd
    finally:
        os.close(fd)


def write_hidden(folder: int, chunks: Iterable[Bytes], size_bytes: int, *, durable: bool) -> str:
    """Write a new hidden file and return its name; on failure nothing is left."""
    name = HIDDEN_PREFIX + uuid.uuid4().hex
    with ExitStack() as on_failure:
        fd = os.open(name, _NEW_FILE, _READ_ONLY_MODE, dir_fd=folder)
        on_failure.callback(os.unlink, name, dir_fd=folder)
        try:
            _fill(fd, chunks, size_bytes)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        on_failure.pop_all()
    return name


@contextmanager
def storage_errors(key: str) -> Iterator[None]:
    """Raise what the operating system reports as the error tree's kinds, with the key in the message."""
    try:
        yield
    except OSError as error:
        raise _translated(key, error) from error


def _step(fd: int, part: str, *, create: bool) -> int:
    if create:
        _make(fd, part)
    below = os.open(part, _FOLDER, dir_fd=fd)
    os.close(fd)
    return below


def _make(fd: int, part: str) -> None:
    try:
        os.mkdir(part, dir_fd=fd)
    except FileExistsError:
        return


def _fill(fd: int, chunks: Iterable[Bytes], size_bytes: int) -> None:
    if size_bytes > 0:
        # A full disk is met here, not at the last megabyte.
        os.posix_fallocate(fd, 0, size_bytes)
    written = 0
    for chunk in chunks:
        written += _write_all(fd, memoryview(chunk).cast("B"))
    if written != size_bytes:
        raise CommandRejected(f"{written} bytes were given where {size_bytes} were announced")


def _write_all(fd: int, view: memoryview) -> int:
    done = 0
    while done < len(view):
        count = os.write(fd, view[done:])
        if count == 0:
            raise OSError(errno.EIO, "the file system wrote nothing")
        done += count
    return done


def _translated(key: str, error: OSError) -> TrackwayError:
    match error.errno:
        case errno.EEXIST:
            return AlreadyExists(key)
        case errno.ENOENT:
            return NotFound(f"{key} does not exist")
        case errno.ENOSPC | errno.EDQUOT:
            return StorageFull(f"no room for {key}: {error.strerror}; free space on the store's disk")
        case errno.ELOOP | errno.ENOTDIR | errno.EISDIR | errno.ENXIO:
            return CommandRejected(f"{key} is, or leads through, something that is not a plain file or folder")
    return Unavailable(f"{key}: {error.strerror or error}")
