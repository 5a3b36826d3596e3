"""Power loss: from recorded operations to every kind of disk that they may leave behind.

What is promised survives: bytes by fsync of their file, names by fsync of their folder. Anything else may or may not.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias


@dataclass
class File:
    """Bytes as they are, and as the last fsync promised them."""

    data: bytes = b""
    durable: bytes = b""


@dataclass
class Folder:
    """Names as they are, and as the last fsync promised them."""

    names: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)


Node: TypeAlias = File | Folder


class Disk:
    """A file system in memory that remembers what was promised."""

    def __init__(self) -> None:
        self.root = Folder()

    def apply(self, operation: tuple[Any, ...]) -> None:
        """Do what a ``Recorder`` saw."""
        match operation:
            case ("mkdir", path):
                self._put(path, Folder())
            case ("create", path):
                self._put(path, File())
            case ("write", path, data):
                self._file(path).data += data
            case ("fsync", path):
                _promise(self._node(path))
            case ("link", source, path):
                self._put(path, self._node(source))
            case ("rename", source, path):
                self._put(path, self._take(source))
            case ("unlink" | "rmtree", path):
                self._take(path)

    def image(self, target: Path, choice: Choice) -> None:
        """Write one disk that a power cut may leave."""
        self._write(self.root, target, choice)

    def _write(self, folder: Folder, target: Path, choice: Choice) -> None:
        target.mkdir()
        for name in sorted(folder.names.keys() | folder.durable.keys()):
            node = choice.name(folder, name)
            if isinstance(node, Folder):
                self._write(node, target / name, choice)
            elif isinstance(node, File):
                (target / name).write_bytes(choice.data(node))

    def _put(self, path: str, node: Node) -> None:
        folder, name = self._at(path)
        folder.names[name] = node

    def _take(self, path: str) -> Node:
        folder, name = self._at(path)
        return folder.names.pop(name)

    def _at(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rpartition("/")
        folder = self._node(parent or ".")
        assert isinstance(folder, Folder)
        return folder, name

    def _file(self, path: str) -> File:
        node = self._node(path)
        assert isinstance(node, File)
        return node

    def _node(self, path: str) -> Node:
        if path == ".":
            return self.root
        folder, name = self._at(path)
        return folder.names[name]


def _promise(node: Node) -> None:
    if isinstance(node, File):
        node.durable = node.data
    else:
        node.durable = dict(node.names)


class Choice(Protocol):
    """Which of the disks that are possible is left."""

    def name(self, folder: Folder, name: str) -> Node | None:
        """What the name leads to, None when it is lost."""
        ...

    def data(self, file: File) -> bytes:
        """What the file holds."""
        ...


class PromisedOnly:
    """Only what was promised survives."""

    def name(self, folder: Folder, name: str) -> Node | None:
        return folder.durable.get(name)

    def data(self, file: File) -> bytes:
        return file.durable


class NamesFirst:
    """All names survive, only promised bytes: files that were never fsynced are empty."""

    def name(self, folder: Folder, name: str) -> Node | None:
        return folder.names.get(name)

    def data(self, file: File) -> bytes:
        return file.durable


class Drawn:
    """Each change survives or not, and unpromised bytes may be torn."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a test that repeats itself, no secret

    def name(self, folder: Folder, name: str) -> Node | None:
        return self._random.choice((folder.names, folder.durable)).get(name)

    def data(self, file: File) -> bytes:
        torn = file.data[: self._random.randint(0, len(file.data))]
        return self._random.choice((file.durable, file.data, torn if file.durable != file.data else file.data))
