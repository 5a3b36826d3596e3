"""A rank's part of a save: data files, then the receipt that promises them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trackway_common.checkpoint.files import RESERVE_BYTES, preflight, write_file
from trackway_common.checkpoint.layout import CheckpointName, checkpoint_prefix, rank_prefix, receipt_key
from trackway_common.checkpoint.receipt import Receipt, encode_receipt
from trackway_common.checkpoint.records import CursorRecord, FileRecord
from trackway_common.object_store.port import Bytes, ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFile:
    """Bytes to be written as one file."""

    path: str
    """Below the checkpoint's folder: ``shard/…``."""
    chunks: Iterable[Bytes]
    size_bytes: int
    items: int = 1
    """Tensors in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSave:
    """What a rank's receipt says besides its files."""

    run_id: str
    name: CheckpointName
    rank: int
    world_size: int
    config_digest: str
    dataset_digests: tuple[str, ...]
    items_planned: int
    layout: str
    code_digest: str = ""
    rng: str | None = None
    """Path of the staged file with the generators' states."""
    cursor: CursorRecord | None = None


def write_rank(
    store: ObjectStore, save: RankSave, files: Sequence[StagedFile], *, reserve_bytes: int = RESERVE_BYTES
) -> Receipt:
    """Write the rank's files and receipt; all is durable on return.

    Raises:
        StorageFull: before the first byte where possible; abandon the save, training goes on.
        Unavailable: a write or fsync failed; abandon the save, never retry it under the same nonce.
        AlreadyExists: the nonce was used before.
    """
    preflight(store, sum(file.size_bytes for file in files), reserve_bytes=reserve_bytes)
    prefix = checkpoint_prefix(save.run_id, save.name)
    records = tuple(write_file(store, prefix, file.path, file.chunks, size_bytes=file.size_bytes) for file in files)
    for folder in _folders(records):
        store.settle(f"{prefix}/{folder}")
    receipt = Receipt(
        run_id=save.run_id,
        step=save.name.step,
        epoch=save.name.epoch,
        nonce=save.name.nonce,
        rank=save.rank,
        world_size=save.world_size,
        config_digest=save.config_digest,
        dataset_digests=save.dataset_digests,
        files=records,
        items_planned=save.items_planned,
        items_written=sum(file.items for file in files),
        layout=save.layout,
        code_digest=save.code_digest,
        rng=save.rng,
        cursor=save.cursor,
    )
    data = encode_receipt(receipt)
    store.create(receipt_key(save.run_id, save.name, save.rank), (data,), size_bytes=len(data))
    store.settle(rank_prefix(save.run_id, save.name))
    return receipt


def _folders(records: Sequence[FileRecord]) -> list[str]:
    """Every folder that holds a file or, in between, another such folder."""
    found: set[str] = set()
    for record in records:
        *folders, _ = record.path.split("/")
        found |= {"/".join(folders[: depth + 1]) for depth in range(len(folders))}
    return sorted(found)
