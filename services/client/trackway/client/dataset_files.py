"""Finds the files of a dataset snapshot below the paths that a user names."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trackway_common.errors import CommandRejected, FieldViolation

from trackway.client.ignore import glob_regex

_NAMED = 5
"""Files that an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFile:
    """One file, before it is hashed."""

    path: str
    """Relative to the root, POSIX."""
    source: Path
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The folder that all paths are relative to, and the files chosen."""

    root: Path
    files: tuple[DatasetFile, ...]
    """Ordered by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Globs:
    """Which files count; patterns are written as in .gitignore, relative to the root."""

    include: tuple[str, ...] = ()
    """Empty: all files."""
    exclude: tuple[str, ...] = ()


def select_files(paths: Sequence[Path], globs: Globs) -> Selection:
    """Return the files at and below the paths.

    Raises:
        CommandRejected: nothing there, nothing chosen, only empty files, a file that can't be read, a link to a folder.
    """
    root = _root(paths)
    chosen = _Chosen(root, globs)
    try:
        found = {file.path: file for path in paths for file in chosen.at(path.absolute())}
    except OSError as error:
        raise refused("path", f"{error.filename}: {error.strerror}; name files and folders that exist") from error
    files = tuple(sorted(found.values(), key=lambda file: file.path.encode()))
    _check(files, globs)
    return Selection(root=root, files=files)


def refused(field: str, description: str) -> CommandRejected:
    """The error about what a snapshot was to hold."""
    return CommandRejected(description, violations=(FieldViolation(field=field, description=description),))


def _root(paths: Sequence[Path]) -> Path:
    folders = [path.absolute() if path.is_dir() else path.absolute().parent for path in paths]
    return Path(os.path.commonpath([os.path.normpath(folder) for folder in folders]))


class _Chosen:
    def __init__(self, root: Path, globs: Globs) -> None:
        self._root = root
        self._include = _regexes("include", globs.include)
        self._exclude = _regexes("exclude", globs.exclude)

    def at(self, path: Path) -> Iterator[DatasetFile]:
        path = Path(os.path.normpath(path))
        relative = self._relative(path)
        if any(regex.fullmatch(relative) for regex in self._exclude):
            return
        if not path.is_dir():
            yield from self._file(path, relative)
            return
        if path.is_symlink() and path != self._root:
            raise refused("path", f"{path} links to a folder; name that folder itself, or --exclude {relative}")
        with os.scandir(path) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            yield from self.at(path / name)

    def _file(self, path: Path, relative: str) -> Iterator[DatasetFile]:
        if self._include and not any(regex.fullmatch(relative) for regex in self._include):
            return
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise refused("path", f"{path} is neither a file nor a folder; --exclude {relative}")
        yield DatasetFile(path=relative, source=path, size_bytes=status.st_size)

    def _relative(self, path: Path) -> str:
        relative = path.relative_to(self._root).as_posix()
        try:
            relative.encode()
        except UnicodeEncodeError as error:
            raise refused("path", f"{path!r}: the name is not UTF-8; rename the file or --exclude it") from error
        return relative


def _regexes(field: str, globs: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(glob_regex(glob.rstrip("/")) for glob in globs)
    except re.error as error:
        raise refused(field, f"{error.pattern!r} is no glob: {error}") from error


def _check(files: tuple[DatasetFile, ...], globs: Globs) -> None:
    if not files:
        narrowed = "; loosen --include and --exclude" if globs.include or globs.exclude else ""
        raise refused("path", f"no files there{narrowed}")
    if not any(file.size_bytes for file in files):
        named = ", ".join(file.path for file in files[:_NAMED])
        raise refused("path", f"all {len(files)} files are empty: {named}; is it the right folder?")
    if unreadable := [file.path for file in files if not os.access(file.source, os.R_OK)]:
        first = ", ".join(unreadable[:_NAMED])
        raise refused("path", f"{len(unreadable)} files can't be read: {first}; make them readable or --exclude them")
