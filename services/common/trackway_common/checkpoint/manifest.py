"""The manifest: all that a checkpoint consists of. Its digest stands in the commit entry."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.canonical import digest_bytes
from trackway_common.checkpoint.json_codec import Malformed, encode, from_json, parse_canonical
from trackway_common.checkpoint.layout import CheckpointName, manifest_key
from trackway_common.checkpoint.records import CursorRecord, FileRecord
from trackway_common.errors import CommandRejected
from trackway_common.events import CheckpointRef, MetricValue
from trackway_common.object_store.port import ObjectStore

MAX_MANIFEST_BYTES = 64 << 20
"""About 200,000 files; a larger one is refused unread."""
FORMAT = "trackway.manifest/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A whole checkpoint. No clock reading in it: the same receipts give the same bytes."""

    run_id: str
    step: int
    epoch: int
    nonce: str
    world_size: int
    layout: str
    config_digest: str
    code_digest: str
    dataset_digests: tuple[str, ...]
    files: tuple[FileRecord, ...]
    """Shards and receipts, ordered by path."""
    rng: tuple[str, ...]
    """Paths of the generators' states, by rank; empty where they were not kept."""
    cursor: CursorRecord | None
    parent: CheckpointRef | None
    metrics: tuple[MetricValue, ...]
    size_bytes: int
    format: str = FORMAT

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format {self.format!r} is not known here")
        if len({file.path for file in self.files}) != len(self.files):
            raise ValueError("a file is listed twice")
        if self.size_bytes != sum(file.size_bytes for file in self.files):
            raise ValueError("its size is not the sum of its files'")
        if not {*self.rng} <= {file.path for file in self.files}:
            raise ValueError("the generators' states are not among the files")

    @property
    def name(self) -> CheckpointName:
        """The attempt at a checkpoint that this describes."""
        return CheckpointName(step=self.step, epoch=self.epoch, nonce=self.nonce)

    @property
    def samples_consumed(self) -> int:
        """By all ranks together since the run began; 0 where the trainer kept no cursor."""
        return self.cursor.samples_consumed if self.cursor else 0


def encode_manifest(manifest: Manifest) -> bytes:
    """Bytes of the manifest."""
    return encode(manifest)


def decode_manifest(data: bytes) -> Manifest:
    """Read a manifest; raises ``Malformed``."""
    return from_json(Manifest, parse_canonical(data), "manifest")


def load_manifest(store: ObjectStore, run_id: str, name: CheckpointName, manifest_digest: str) -> Manifest:
    """Return the manifest that a commit names.

    Raises:
        NotFound: it is gone.
        CommandRejected: it is not the one that was committed (damaged, swapped, a symbolic link, too large).
    """
    key = manifest_key(run_id, name)
    data = store.get(key, limit_bytes=MAX_MANIFEST_BYTES)
    if digest_bytes(data) != manifest_digest:
        raise CommandRejected(f"{key} is not what was committed: its digest differs", reason="CHECKPOINT_DAMAGED")
    try:
        manifest = decode_manifest(data)
    except Malformed as error:
        raise CommandRejected(f"{key}: {error}", reason="CHECKPOINT_DAMAGED") from error
    if (manifest.run_id, manifest.name) != (run_id, name):
        raise CommandRejected(
            f"{key} is the manifest of {manifest.name} of run {manifest.run_id}", reason="CHECKPOINT_DAMAGED"
        )
    return manifest
