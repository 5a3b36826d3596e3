"""Writes one rank's part of a checkpoint: its shard, then the receipt for it. Used by the actor and the local SDK."""

from __future__ import annotations

import json
from dataclasses import dataclass

from trackway_common.checkpoint.files import MAX_TENSOR_HEADER_BYTES, pieces
from trackway_common.checkpoint.layout import CheckpointName
from trackway_common.checkpoint.receipt import Receipt
from trackway_common.checkpoint.records import CursorRecord
from trackway_common.checkpoint.save import RankSave, StagedFile, write_rank
from trackway_common.errors import CommandRejected
from trackway_common.object_store.port import Bytes, ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """What every checkpoint of a run is of; receipts that differ in it are not put together."""

    run_id: str
    world_size: int
    config_digest: str
    code_digest: str
    dataset_digests: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPart:
    """One rank's state at one step, captured in memory."""

    name: CheckpointName
    rank: int
    items: int
    """Tensors that were meant to be captured."""
    cursor: CursorRecord | None


def shard_path(rank: int) -> str:
    """The rank's one data file: tensors, generator states and, in its header, everything that is no tensor."""
    return f"shard/r{rank:05d}-0.safetensors"


def write_rank_part(store: ObjectStore, inputs: RunInputs, part: RankPart, shard: Bytes) -> Receipt:
    """Make the rank's part durable, receipt last; ``shard`` is in safetensors layout and must not change meanwhile.

    Raises:
        AlreadyExists: this part was written before.
        StorageFull, Unavailable: the save is lost; abandon it.
        CommandRejected: the shard does not hold what was planned.
    """
    save = RankSave(
        run_id=inputs.run_id,
        name=part.name,
        rank=part.rank,
        world_size=inputs.world_size,
        config_digest=inputs.config_digest,
        dataset_digests=inputs.dataset_digests,
        items_planned=part.items,
        layout="ddp" if inputs.world_size > 1 else "single",
        code_digest=inputs.code_digest,
        rng=shard_path(part.rank),
        cursor=part.cursor,
    )
    file = StagedFile(
        path=shard_path(part.rank),
        chunks=pieces(shard),
        size_bytes=memoryview(shard).nbytes,
        items=count_tensors(shard),
    )
    return write_rank(store, save, [file])


def count_tensors(shard: Bytes) -> int:
    """Tensors that the shard's header names.

    Raises:
        CommandRejected: the bytes have no such header.
    """
    view = memoryview(shard).cast("B")
    header_bytes = int.from_bytes(view[:8], "little")
    if not 2 <= header_bytes <= min(MAX_TENSOR_HEADER_BYTES, len(view) - 8):
        raise CommandRejected(f"a shard of {len(view)} bytes can't have a header of {header_bytes}")
    try:
        header = json.loads(bytes(view[8 : 8 + header_bytes]))
    except ValueError as error:
        raise CommandRejected(f"the shard's header is no JSON: {error}") from error
    return sum(1 for name in header if name != "__metadata__")
