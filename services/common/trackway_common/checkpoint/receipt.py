"""A rank's receipt: what it wrote for one checkpoint, written after the bytes were durable."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.checkpoint.json_codec import Malformed, encode, from_json, parse_canonical
from trackway_common.checkpoint.layout import CheckpointName, receipt_key
from trackway_common.checkpoint.records import CursorRecord, FileRecord
from trackway_common.errors import CommandRejected
from trackway_common.object_store.port import ObjectStore

MAX_RECEIPT_BYTES = 16 << 20
"""About 50,000 files of one rank; a larger one is no receipt."""
FORMAT = "trackway.receipt/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one rank wrote, and of which run, step and inputs it is."""

    run_id: str
    step: int
    epoch: int
    nonce: str
    rank: int
    world_size: int
    config_digest: str
    dataset_digests: tuple[str, ...]
    files: tuple[FileRecord, ...]
    items_planned: int
    """Tensors or files that the rank meant to write …"""
    items_written: int
    """… and that it wrote. A difference is a save that lost something."""
    layout: str = ""
    """How state is spread over ranks: ddp, single or directory."""
    code_digest: str = ""
    rng: str | None = None
    """Path, among the files, of the random number generators' states."""
    cursor: CursorRecord | None = None
    """The yielded position; the same in every rank."""
    format: str = FORMAT

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format {self.format!r} is not known here")
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank {self.rank} of world size {self.world_size}")
        paths = {file.path for file in self.files}
        if len(paths) != len(self.files):
            raise ValueError("a file is listed twice")
        if self.rng is not None and self.rng not in paths:
            raise ValueError(f"the generators' states {self.rng!r} are not among the files")

    @property
    def name(self) -> CheckpointName:
        """The attempt at a checkpoint that this is part of."""
        return CheckpointName(step=self.step, epoch=self.epoch, nonce=self.nonce)


def encode_receipt(receipt: Receipt) -> bytes:
    """Bytes of the receipt."""
    return encode(receipt)


def decode_receipt(data: bytes) -> Receipt:
    """Read a receipt; raises ``Malformed``."""
    return from_json(Receipt, parse_canonical(data), "receipt")


def read_receipt(store: ObjectStore, run_id: str, name: CheckpointName, rank: int) -> tuple[Receipt, bytes]:
    """Return the rank's receipt with its bytes.

    Raises:
        NotFound: the rank has written none.
        CommandRejected: it is damaged, or that of another rank or checkpoint.
    """
    key = receipt_key(run_id, name, rank)
    data = store.get(key, limit_bytes=MAX_RECEIPT_BYTES)
    try:
        receipt = decode_receipt(data)
    except Malformed as error:
        raise CommandRejected(f"{key}: {error}", reason="RECEIPT_INVALID") from error
    if (receipt.run_id, receipt.name, receipt.rank) != (run_id, name, rank):
        raise CommandRejected(
            f"{key} is the receipt of rank {receipt.rank} of {receipt.name} of run {receipt.run_id}",
            reason="RECEIPT_INVALID",
        )
    return receipt, data
