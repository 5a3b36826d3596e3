"""What receipts and manifests are made of."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trackway_common.errors import CommandRejected
from trackway_common.object_store.port import key_parts

_FOLDERS = {"shard", "rank"}
_XXH3_64 = re.compile(r"[0-9a-f]{16}")
_BLAKE3 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRecord:
    """One file of a checkpoint, with what it must hash to."""

    path: str
    """Below the checkpoint's own folder: ``shard/…`` or ``rank/…``."""
    size_bytes: int
    xxh3_64: str
    blake3: str

    def __post_init__(self) -> None:
        try:
            folder, *below = key_parts(self.path)
        except CommandRejected as error:
            raise ValueError(error.message) from error
        if folder not in _FOLDERS or not below:
            raise ValueError(f"{self.path!r} is not below shard/ or rank/")
        if self.size_bytes < 0:
            raise ValueError(f"{self.path}: a size of {self.size_bytes}")
        if not _XXH3_64.fullmatch(self.xxh3_64) or not _BLAKE3.fullmatch(self.blake3):
            raise ValueError(f"{self.path}: its hashes are not lower-case hex of 64 and 256 bits")


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorRecord:
    """How far the run has read its data: a position in an order that these numbers determine."""

    seed: str
    """Decimal: seeds use 64 bits, JSON numbers 53."""
    data_epoch: int
    samples_consumed: int
    """By all ranks together since the run began."""

    def __post_init__(self) -> None:
        if not self.seed.isascii() or not self.seed.isdigit():
            raise ValueError(f"cursor seed {self.seed!r} is no decimal number")
        if self.data_epoch < 0 or self.samples_consumed < 0:
            raise ValueError("a cursor is not negative")
