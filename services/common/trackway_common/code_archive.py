"""Materialises a run's code archive: once per node and digest, checked again at every use.

Extraction takes plain files and folders only: an archive is somebody else's input.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from trackway_common.errors import CommandRejected

MAX_FILES = 100_000
MAX_BYTES = 4 * 2**30
"""Extracted; more than this is data, and data belongs into a dataset."""


def materialise(digest: str, fetch: Callable[[], bytes], cache: Path) -> Path:
    """Folder with the archive's files; ranks of one node that ask at the same time get the same one.

    ``fetch`` gives the verified archive; it is called only when nothing usable is there. A folder that a trainer
    wrote into stays as it is, since that trainer may still run in it, and a fresh one is made.

    Raises:
        CommandRejected: the archive is damaged, too large, or names something outside its folder.
    """
    cache.mkdir(parents=True, exist_ok=True)
    name = digest.replace(":", "-")
    current = cache / f"{name}.current"
    with _locked(cache / f"{name}.lock"):
        return _unaltered(current) or _fresh(fetch(), current)


def tree_digest(folder: Path) -> str:
    """Digest over the paths, contents and executable bits below a folder, bytecode caches aside."""
    seen = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            seen.update(f"{path.relative_to(folder)}\0{os.access(path, os.X_OK)}\0{content}\n".encode())
    return seen.hexdigest()


def extract(archive: bytes, folder: Path) -> None:
    """Unpack a tar into an empty folder.

    Raises:
        CommandRejected: no tar, a link, a device, a path that leaves the folder, or too much of it.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:*") as tar:
            for member in _allowed(tar):
                _write(tar, member, folder)
    except tarfile.TarError as error:
        raise CommandRejected(f"the code archive can't be read: {error}", reason="CODE_ARCHIVE") from error


def _unaltered(current: Path) -> Path | None:
    """The folder that was extracted last, if its files are still those of the archive."""
    if not current.exists():
        return None
    folder_name, tree = current.read_text().split()
    folder = current.parent / folder_name
    return folder if folder.exists() and tree_digest(folder) == tree else None


def _fresh(archive: bytes, current: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"{current.stem}.", dir=current.parent))
    try:
        extract(archive, folder)
    except BaseException:  # also when interrupted: nothing names the folder any more
        shutil.rmtree(folder, ignore_errors=True)
        raise
    current.write_text(f"{folder.name} {tree_digest(folder)}")
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the file's lock; the kernel frees it when the holder dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _allowed(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    size_bytes = 0
    for count, member in enumerate(tar, start=1):
        size_bytes += member.size
        if count > MAX_FILES or size_bytes > MAX_BYTES:
            raise _refused(member, f"the archive holds more than {MAX_FILES} files or {MAX_BYTES} bytes")
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts:
            raise _refused(member, "the path leaves the archive")
        if not (member.isreg() or member.isdir()):
            raise _refused(member, "only plain files and folders are taken")
        yield member


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    target = folder.joinpath(*PurePosixPath(member.name).parts)
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    content: IO[bytes] | None = tar.extractfile(member)
    assert content is not None
    try:
        # Exclusive: a second member of the same name would hide what was reviewed as the first.
        with content, target.open("xb") as file:
            shutil.copyfileobj(content, file)
    except FileExistsError as error:
        raise _refused(member, "the archive names it twice") from error
    target.chmod(0o755 if member.mode & 0o100 else 0o644)


def _refused(member: tarfile.TarInfo, why: str) -> CommandRejected:
    return CommandRejected(f"code archive, member {member.name!r}: {why}", reason="CODE_ARCHIVE")
