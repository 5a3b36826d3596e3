"""The files of a code folder: what git would track, without what no run needs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trackway_common.errors import CommandRejected, FieldViolation

from trackway.client.ignore import Rule, is_ignored, read_rules

ALWAYS_LEFT_OUT = frozenset({".git", "__pycache__", ".venv"})
FIELD = "code.path"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFile:
    """One file of the archive."""

    path: str
    """Relative to the code folder, POSIX."""
    source: Path
    size_bytes: int
    executable: bool


def code_files(folder: Path) -> tuple[CodeFile, ...]:
    """Return the folder's files, ordered by path; ignored ones left out, links replaced by what they lead to.

    Raises:
        CommandRejected: no such folder, a link that leaves it or goes in a circle, a file that can't be read.
    """
    root = folder.resolve()
    if not root.is_dir():
        raise refused(f"{folder} is no folder; write the folder that holds the entry point, relative to the spec")
    try:
        found = list(_Walk(root).files())
    except OSError as error:
        raise refused(f"{error.filename}: {error.strerror}; make it readable or add it to .gitignore") from error
    return tuple(sorted(found, key=lambda file: file.path.encode()))


def refused(description: str) -> CommandRejected:
    """The error about a code folder."""
    return CommandRejected(description, violations=(FieldViolation(field=FIELD, description=description),))


class _Walk:
    def __init__(self, root: Path) -> None:
        self._root = root
        top = _work_tree(root)
        self._prefix = f"{root.relative_to(top).as_posix()}/" if top != root else ""
        self._inherited = tuple(rule for parent in _between(top, root) for rule in _rules_of(parent, top))
        self._top = top

    def files(self) -> Iterator[CodeFile]:
        return self._below(self._root, "", self._inherited, (self._root,))

    def _below(self, folder: Path, prefix: str, rules: tuple[Rule, ...], above: tuple[Path, ...]) -> Iterator[CodeFile]:
        rules += read_rules(folder / ".gitignore", self._prefix + prefix)
        with os.scandir(folder) as entries:
            kept = [e for e in entries if not self._left_out(e, prefix, rules)]
        for entry in kept:
            path, source = prefix + _checked_name(entry, prefix), Path(entry.path)
            if entry.is_symlink():
                source = self._target(source, path)
            if source.is_dir():
                if source.resolve() in above:
                    raise refused(f"{path} links to a folder that holds it; remove the link or add it to .gitignore")
                yield from self._below(source, f"{path}/", rules, (*above, source.resolve()))
            elif source.is_file():
                status = source.stat()
                yield CodeFile(
                    path=path, source=source, size_bytes=status.st_size, executable=bool(status.st_mode & 0o100)
                )

    def _left_out(self, entry: os.DirEntry[str], prefix: str, rules: tuple[Rule, ...]) -> bool:
        if entry.name in ALWAYS_LEFT_OUT:
            return True
        is_folder = entry.is_dir(follow_symlinks=False)
        return is_ignored(rules, self._prefix + prefix + entry.name, is_folder=is_folder)

    def _target(self, link: Path, path: str) -> Path:
        try:
            target = link.resolve(strict=True)
        except (FileNotFoundError, RuntimeError) as error:
            raise refused(f"{path} is a link that leads nowhere; remove it or add it to .gitignore") from error
        if not target.is_relative_to(self._root):
            raise refused(f"{path} is a link that leaves the code folder; copy the file in or add it to .gitignore")
        return target


def _checked_name(entry: os.DirEntry[str], prefix: str) -> str:
    try:
        entry.name.encode()
    except UnicodeEncodeError as error:
        raise refused(f"{prefix}{entry.name!r}: the name is not UTF-8; rename it or add it to .gitignore") from error
    return entry.name


def _work_tree(folder: Path) -> Path:
    """Top of the git work tree that the folder is in; the folder itself outside of one."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)


def _between(top: Path, folder: Path) -> list[Path]:
    """Folders from the top down to, and without, the folder."""
    return [parent for parent in reversed(folder.parents) if parent.is_relative_to(top)]


def _rules_of(folder: Path, top: Path) -> tuple[Rule, ...]:
    base = folder.relative_to(top).as_posix()
    return read_rules(folder / ".gitignore", "" if base == "." else f"{base}/")
