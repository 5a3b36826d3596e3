"""Dataset manifests, and files that are checked against them when they are read.

A manifest is immutable and named by the digest of its canonical JSON. Its root is only where the files
were found; what they must contain is the manifest's word.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trackway_common.canonical import Json
from trackway_common.errors import CommandRejected, Unavailable

DATA_CORRUPT = "DATA_CORRUPT"
"""Reason of a refusal because bytes differ from the manifest; also the termination reason it leads to."""
_STORAGE_FAULTS = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EREMOTEIO})
"""What a disk or a file server answers that may answer otherwise soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """One file as it was when the snapshot was taken."""

    path: str
    """Relative to the manifest's root, with forward slashes."""
    size_bytes: int
    sha256: str
    """64 hex digits."""
    split: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetManifest:
    """A snapshot: files of named splits below one root."""

    name: str
    root: Path
    files: tuple[ManifestFile, ...]
    splits: Mapping[str, str]
    """Digest per split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFile:
    """A file on this machine that a manifest speaks for."""

    entry: ManifestFile
    location: Path

    @property
    def path(self) -> str:
        """Path in the manifest: the same on every machine."""
        return self.entry.path

    def read_bytes(self) -> bytes:
        """Return the content.

        Raises:
            CommandRejected: reason DATA_CORRUPT; the file is missing or not what the manifest says.
            Unavailable: the storage failed; nothing is said about the file.
        """
        try:
            content = self.location.read_bytes()
        except OSError as error:
            if error.errno in _STORAGE_FAULTS:
                raise Unavailable(f"{self.path} can't be read now: {error.strerror} ({self.location})") from error
            raise _corrupt(self, f"can't be read: {error.strerror}") from error
        if len(content) != self.entry.size_bytes:
            raise _corrupt(self, f"has {len(content)} bytes, not {self.entry.size_bytes}")
        if hashlib.sha256(content).hexdigest() != self.entry.sha256:
            raise _corrupt(self, "has another content than when the snapshot was taken")
        return content


def parse_manifest(data: bytes) -> DatasetManifest:
    """Read a manifest.

    Raises:
        CommandRejected: reason MANIFEST_INVALID; no manifest, or a path that leaves its root.
    """
    try:
        body = json.loads(data)
        return DatasetManifest(
            name=str(body["name"]),
            root=Path(body["root"]),
            files=tuple(_file(entry) for entry in body["files"]),
            splits=dict(body["splits"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"this is no dataset manifest: {type(error).__name__}: {error}"
        raise CommandRejected(message, reason="MANIFEST_INVALID") from error


def dataset_files(manifest: DatasetManifest, split: str | None = None) -> Sequence[DatasetFile]:
    """Return a split's files in the manifest's order; all files where no split is named.

    Raises:
        CommandRejected: the manifest has no such split.
    """
    if split is not None and split not in manifest.splits:
        have = ", ".join(sorted(manifest.splits)) or "none"
        raise CommandRejected(f"dataset {manifest.name!r} has no split {split!r}; it has {have}", reason="NO_SPLIT")
    return tuple(
        DatasetFile(entry=entry, location=manifest.root / entry.path)
        for entry in manifest.files
        if split is None or entry.split == split
    )


def _file(entry: Mapping[str, Json]) -> ManifestFile:
    path = PurePosixPath(str(entry["path"]))
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{path} leaves the dataset's root")
    size = entry["bytes"]
    if not isinstance(size, int):
        raise TypeError(f"bytes of {path} is not a number")
    sha256 = str(entry["sha256"]).removeprefix("sha256:")
    return ManifestFile(path=str(path), size_bytes=size, sha256=sha256, split=str(entry.get("split", "")))


def _corrupt(file: DatasetFile, why: str) -> CommandRejected:
    message = f"{file.path} {why}; restore it, or take a new snapshot ({file.location})"
    return CommandRejected(message, reason=DATA_CORRUPT)
