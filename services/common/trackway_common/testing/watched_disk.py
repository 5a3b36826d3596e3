"""The local store's view of ``os``, with a watcher ahead of every operation that changes the disk.

The watcher may count, record, raise, or end the process: what is on the disk then is what a crash leaves.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

Watcher: TypeAlias = Callable[[str, tuple[Any, ...], dict[str, Any]], None]
"""Called with an operation's name, positional and keyword arguments."""

CHANGING = frozenset({"write", "fsync", "link", "unlink", "rename", "mkdir", "posix_fallocate"})


class WatchedOs:
    """Stands in for the module ``os``; an ``open`` that creates is reported as ``create``."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def __getattr__(self, name: str) -> Any:
        function = getattr(os, name)
        if name not in CHANGING:
            return function

        def watched(*args: Any, **kwargs: Any) -> Any:
            self._watcher(name, args, kwargs)
            return function(*args, **kwargs)

        return watched

    def open(self, path: str, flags: int, *args: Any, **kwargs: Any) -> int:
        """As ``os.open``."""
        if flags & os.O_CREAT:
            self._watcher("create", (path, *args), kwargs)
        return os.open(path, flags, *args, **kwargs)


class WatchedShutil:
    """Stands in for the module ``shutil``, as far as the store uses it."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def rmtree(self, name: str, *, dir_fd: int) -> None:
        """As ``shutil.rmtree``."""
        self._watcher("rmtree", (name,), {"dir_fd": dir_fd})
        shutil.rmtree(name, dir_fd=dir_fd)


class Recorder:
    """A watcher that turns what the store does into the operations that ``crash_images`` replays."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.operations: list[tuple[Any, ...]] = []

    def __call__(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        match name:
            case "create" | "unlink" | "rmtree":
                self._add(name, self._path(args[0], kwargs["dir_fd"]))
            case "mkdir":
                path = self._path(args[0], kwargs["dir_fd"])
                if not (self.root / path).exists():
                    self._add(name, path)
            case "write":
                self._add(name, self._open_path(args[0]), bytes(args[1]))
            case "fsync":
                self._add(name, self._open_path(args[0]))
            case "link" | "rename":
                source, target = self._path(args[0], kwargs["src_dir_fd"]), self._path(args[1], kwargs["dst_dir_fd"])
                if name == "rename" or not (self.root / target).exists():
                    self._add(name, source, target)

    def acknowledge(self, what: str, number: int) -> None:
        """Note that from here on somebody counts on this."""
        self._add("acknowledged", what, number)

    def _add(self, *operation: Any) -> None:
        self.operations.append(operation)

    def _path(self, name: str, dir_fd: int) -> str:
        return str((Path(f"/proc/self/fd/{dir_fd}").readlink() / name).relative_to(self.root))

    def _open_path(self, fd: int) -> str:
        return str(Path(f"/proc/self/fd/{fd}").readlink().relative_to(self.root))
