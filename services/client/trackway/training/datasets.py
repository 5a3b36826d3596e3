"""The run's datasets: files that are checked against the snapshot's manifest when they are read."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trackway_common import dataset_manifest
from trackway_common.canonical import digest_bytes
from trackway_common.dataset_manifest import DatasetManifest, parse_manifest
from trackway_common.errors import CommandRejected, Unavailable

from trackway.training.errors import DataCorrupt, DataUnavailable
from trackway.training.surroundings import DatasetPointer


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One file of a dataset."""

    checked: dataset_manifest.DatasetFile

    @property
    def path(self) -> str:
        """Its path in the manifest: the same on every machine."""
        return self.checked.path

    @property
    def split(self) -> str:
        """The split that it belongs to."""
        return self.checked.entry.split

    @property
    def size_bytes(self) -> int:
        """Its size in the manifest."""
        return self.checked.entry.size_bytes

    def read_bytes(self) -> bytes:
        """The content.

        Raises:
            DataCorrupt: the file is missing, or is not what the snapshot holds.
            DataUnavailable: the storage failed.
        """
        try:
            return self.checked.read_bytes()
        except CommandRejected as error:
            raise DataCorrupt(error.message) from error
        except Unavailable as error:
            raise DataUnavailable(str(error)) from error

    def read_text(self, encoding: str = "utf-8") -> str:
        """The content as text; raises as ``read_bytes`` does."""
        return self.read_bytes().decode(encoding)

    def open(self) -> io.BytesIO:
        """The content as a binary file, for what wants one; checked before the first byte is given."""
        return io.BytesIO(self.read_bytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A snapshot that the run names."""

    name: str
    weight: float
    """Relative share in a mixture, as submitted."""
    manifest: DatasetManifest
    manifest_digest: str

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of its splits."""
        return tuple(sorted(self.manifest.splits))

    def files(self, split: str | None = None) -> tuple[DataFile, ...]:
        """The files of a split, in the manifest's order; without a name, all.

        Raises:
            ValueError: no such split.
        """
        try:
            found = dataset_manifest.dataset_files(self.manifest, split)
        except CommandRejected as error:
            raise ValueError(error.message) from error
        return tuple(DataFile(checked=file) for file in found)


def given_datasets(pointers: Sequence[DatasetPointer]) -> dict[str, Dataset]:
    """The datasets that the run was submitted with."""
    return {pointer.name: _dataset(pointer.name, pointer.manifest.read_bytes(), pointer.weight) for pointer in pointers}


def local_datasets(folders: Mapping[str, str | Path], splits: Sequence[str]) -> dict[str, Dataset]:
    """Folders as datasets, hashed now; splits are drawn by the rule of ``trackway dataset snapshot``."""
    # Only a program that was started by hand comes here; under Trackway the client's imports are not wanted.
    from trackway.client.dataset_files import Globs
    from trackway.client.snapshot import take_snapshot
    from trackway.client.splits import parse_splits

    rule = parse_splits(splits)
    return {
        name: _dataset(name, take_snapshot(name, (Path(folder),), Globs(), rule).manifest, 1.0)
        for name, folder in folders.items()
    }


def _dataset(name: str, manifest: bytes, weight: float) -> Dataset:
    return Dataset(name=name, weight=weight, manifest=parse_manifest(manifest), manifest_digest=digest_bytes(manifest))
