"""Whether a committed checkpoint is still what was committed. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from trackway_common.checkpoint.files import check_tensor_header, checked_chunks
from trackway_common.checkpoint.layout import checkpoint_prefix, parse_path
from trackway_common.checkpoint.manifest import Manifest, load_manifest
from trackway_common.checkpoint.records import FileRecord
from trackway_common.errors import CommandRejected
from trackway_common.object_store.port import ObjectStore


class Depth(StrEnum):
    """How much of a checkpoint a verification reads."""

    SIZES = "sizes"
    """The manifest, and each file's size."""
    HASHES = "hashes"
    """Every byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    manifest: Manifest | None
    """None when it could not be trusted."""
    problems: tuple[str, ...]
    """Each names a file and what is wrong with it; empty when all is well."""

    @property
    def ok(self) -> bool:
        return not self.problems


def verify_commit(store: ObjectStore, run_id: str, path: str, manifest_digest: str, depth: Depth) -> Verification:
    """Check the checkpoint at ``path`` against the digest in its commit entry.

    Raises:
        Unavailable: the store could not be read; says nothing about the checkpoint.
    """
    try:
        name = parse_path(path)
        manifest = load_manifest(store, run_id, name, manifest_digest)
    except CommandRejected as error:
        return Verification(manifest=None, problems=(error.message,))
    check = partial(_problem, store, checkpoint_prefix(run_id, name), depth=depth)
    return Verification(manifest=manifest, problems=tuple(filter(None, map(check, manifest.files))))


def _problem(store: ObjectStore, prefix: str, record: FileRecord, *, depth: Depth) -> str | None:
    try:
        if depth is Depth.HASHES:
            _read_all(store, prefix, record)
        elif (size := store.size(f"{prefix}/{record.path}")) != record.size_bytes:
            return f"{record.path} has {size} bytes, {record.size_bytes} were committed"
        if record.path.endswith(".safetensors"):
            check_tensor_header(store, prefix, record)
    except CommandRejected as error:
        return error.message
    return None


def _read_all(store: ObjectStore, prefix: str, record: FileRecord) -> None:
    for _ in checked_chunks(store, prefix, record):
        pass
