"""The code archive: the same folder gives the same bytes, on any machine and at any time."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import IO

from trackway.client.folder_walk import CodeFile, code_files, refused
from trackway.client.progress import SILENT, Progress

MAX_BYTES = 256 << 20
"""Code is megabytes; more is data or an environment that lies in the folder by mistake."""
MAX_FILES = 50_000


def write_archive(folder: Path, to: IO[bytes], progress: Progress = SILENT) -> None:
    """Write the folder's files as an uncompressed tar: ordered by path, no times, owners or umask in it.

    Uncompressed because two builds of zlib compress the same bytes differently.

    Raises:
        CommandRejected: the folder is none, is empty, is too large, or changed meanwhile.
    """
    files = code_files(folder)
    _check_size(folder, files)
    progress.begin("Packing code", sum(file.size_bytes for file in files))
    with tarfile.open(fileobj=to, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file in files:
            _add(tar, file)
            progress.advance(file.size_bytes)


def _add(tar: tarfile.TarFile, file: CodeFile) -> None:
    member = tarfile.TarInfo(file.path)
    member.size = file.size_bytes
    member.mode = 0o755 if file.executable else 0o644
    try:
        with file.source.open("rb") as content:
            tar.addfile(member, content)
            grown = content.read(1)
    except OSError as error:
        raise refused(f"{file.path} can't be read: {error.strerror or error}; is something writing to it?") from error
    if grown:
        raise refused(f"{file.path} grew while it was read; submit again when nothing writes to it")


def _check_size(folder: Path, files: tuple[CodeFile, ...]) -> None:
    if not files:
        raise refused(f"{folder} holds no files that are not ignored; is it the right folder?")
    size_bytes = sum(file.size_bytes for file in files)
    if size_bytes <= MAX_BYTES and len(files) <= MAX_FILES:
        return
    largest = sorted(files, key=lambda file: file.size_bytes, reverse=True)[:3]
    named = ", ".join(f"{file.path} ({file.size_bytes / 2**20:.1f} MiB)" for file in largest)
    raise refused(
        f"{folder} holds {len(files)} files of {size_bytes / 2**20:.1f} MiB; "
        f"at most {MAX_FILES} of {MAX_BYTES >> 20} MiB are sent. "
        f"The largest: {named}. Add what no run needs to .gitignore, and snapshot data with `trackway dataset snapshot`"
    )
