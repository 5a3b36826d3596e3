"""Makes a dataset manifest: what the files are, by digest. Nothing is copied."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trackway_common.canonical import Json, canonical_json, digest
from trackway_common.rpc_limits import MAX_MESSAGE_BYTES

from trackway.client.dataset_files import DatasetFile, Globs, refused, select_files
from trackway.client.progress import SILENT, Progress
from trackway.client.splits import SplitRule

_CHUNK_BYTES = 1 << 20
MAX_MANIFEST_BYTES = MAX_MESSAGE_BYTES - (64 << 10)
"""A manifest travels in one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSummary:
    """What fell into one split."""

    name: str
    files: int
    size_bytes: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A manifest and what is in it."""

    name: str
    root: Path
    manifest: bytes
    """Canonical JSON: {name, root, files: [{path, bytes, sha256, split}], splits: {name: digest}}."""
    splits: tuple[SplitSummary, ...]
    empty_files: int
    """Kept, as they are part of what is there; nothing is learned from them."""


def take_snapshot(
    name: str, paths: tuple[Path, ...], globs: Globs, rule: SplitRule, progress: Progress = SILENT
) -> Snapshot:
    """Hash the files and return their manifest; the same files give the same bytes.

    Raises:
        CommandRejected: what ``select_files`` refuses, a split without files, a file that changed meanwhile,
            or more files than a manifest holds.
    """
    selection = select_files(paths, globs)
    progress.begin("Hashing", sum(file.size_bytes for file in selection.files))
    entries = [_entry(file, rule, progress) for file in selection.files]
    splits = _summaries(entries, rule)
    manifest: dict[str, Json] = {
        "name": name,
        "root": str(selection.root),
        "files": entries,
        "splits": {split.name: split.digest for split in splits},
    }
    body = canonical_json(manifest)
    if len(body) > MAX_MANIFEST_BYTES:
        raise refused("path", f"{len(entries)} files make a manifest of {len(body)} bytes; take several snapshots")
    empty_files = sum(file.size_bytes == 0 for file in selection.files)
    return Snapshot(name=name, root=selection.root, manifest=body, splits=splits, empty_files=empty_files)


def _entry(file: DatasetFile, rule: SplitRule, progress: Progress) -> dict[str, Json]:
    return {
        "path": file.path,
        "bytes": file.size_bytes,
        "sha256": _sha256(file, progress),
        "split": rule.split_of(file.path),
    }


def _sha256(file: DatasetFile, progress: Progress) -> str:
    seen, size_bytes = hashlib.sha256(), 0
    try:
        with file.source.open("rb") as content:
            while chunk := content.read(_CHUNK_BYTES):
                seen.update(chunk)
                size_bytes += len(chunk)
                progress.advance(len(chunk))
    except OSError as error:
        raise refused("path", f"{file.source}: {error.strerror}; make it readable or --exclude it") from error
    if size_bytes != file.size_bytes:
        raise refused("path", f"{file.source} changed while it was read; try again when nothing writes to it")
    return seen.hexdigest()


def _summaries(entries: list[dict[str, Json]], rule: SplitRule) -> tuple[SplitSummary, ...]:
    by_split: dict[str, list[Mapping[str, Json]]] = {name: [] for name in rule.names}
    for entry in entries:
        by_split.setdefault(str(entry["split"]), []).append(entry)
    for name, members in by_split.items():
        if not members:
            raise refused("split", f"{name} got none of {len(entries)} files; give it a larger fraction")
    return tuple(_summary(name, members) for name, members in sorted(by_split.items()))


def _summary(name: str, members: list[Mapping[str, Json]]) -> SplitSummary:
    # The split's own name is left out, so that equal contents are equal splits.
    content: Json = [{key: value for key, value in member.items() if key != "split"} for member in members]
    sizes = [size for member in members if isinstance(size := member["bytes"], int)]
    return SplitSummary(name=name, files=len(members), size_bytes=sum(sizes), digest=digest(content))
