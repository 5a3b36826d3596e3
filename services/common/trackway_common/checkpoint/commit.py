"""Turn a complete set of receipts into a committed checkpoint: check, manifest, marker.

May be repeated after any failure, and by two processes at once: the result is one commit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import blake3
import xxhash

from trackway_common.canonical import digest_bytes
from trackway_common.checkpoint.admission import admit
from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.entries import Commit, LogEntry, fitted
from trackway_common.checkpoint.layout import CheckpointName, checkpoint_prefix, manifest_key, receipt_path
from trackway_common.checkpoint.manifest import MAX_MANIFEST_BYTES, Manifest, encode_manifest
from trackway_common.checkpoint.receipt import Receipt, read_receipt
from trackway_common.checkpoint.records import FileRecord
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.events import CheckpointRef, MetricValue
from trackway_common.object_store.port import AlreadyExists, ObjectStore


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRequest:
    """All ranks' receipts of this checkpoint are written: commit it."""

    run_id: str
    name: CheckpointName
    world_size: int
    config_digest: str
    dataset_digests: tuple[str, ...]
    parent: CheckpointRef | None = None
    metrics: tuple[MetricValue, ...] = ()
    """Those that are no finite number are left out: JSON has no form for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    receipt: Receipt
    record: FileRecord
    """Of the receipt itself."""


def commit_checkpoint(log: CommitLog, request: CommitRequest) -> LogEntry:
    """Commit the checkpoint and return its entry, also when it was committed before.

    Raises:
        CommandRejected: ``RECEIPTS_INCOMPLETE`` or ``RECEIPTS_DISAGREE``: it never was whole; abandon it.
        Fenced: a higher epoch owns the run.
    """
    probe = _marker(request, "", 0, 0)
    existing = admit(log.refresh(), probe, at_ms=log.now_ms())
    if existing is not None:
        return log.append(probe)
    written = _receipts(log.store, request)
    _refuse_disagreement(request, [item.receipt for item in written])
    _refuse_missing_files(log.store, request, written)
    manifest = _manifest(request, written)
    data = encode_manifest(manifest)
    _put_manifest(log.store, manifest_key(request.run_id, request.name), data)
    return log.append(_marker(request, digest_bytes(data), manifest.size_bytes, manifest.samples_consumed))


def _receipts(store: ObjectStore, request: CommitRequest) -> list[_Written]:
    written: list[_Written] = []
    missing: list[int] = []
    for rank in range(request.world_size):
        try:
            receipt, data = read_receipt(store, request.run_id, request.name, rank)
        except NotFound:
            missing.append(rank)
            continue
        written.append(_Written(receipt=receipt, record=_record_of(receipt_path(rank), data)))
    if missing or not written:
        raise CommandRejected(
            f"{request.name}: no receipt of ranks {missing} of world size {request.world_size}",
            reason="RECEIPTS_INCOMPLETE",
        )
    return written


def _record_of(path: str, data: bytes) -> FileRecord:
    return FileRecord(
        path=path,
        size_bytes=len(data),
        xxh3_64=xxhash.xxh3_64(data).hexdigest(),
        blake3=blake3.blake3(data).hexdigest(),
    )


def _refuse_disagreement(request: CommitRequest, receipts: Sequence[Receipt]) -> None:
    first = receipts[0]
    # Order of datasets has no meaning; how state is spread, code and cursor are one for all ranks.
    rules: tuple[tuple[str, Callable[[Receipt], object], object], ...] = (
        ("world size", lambda r: r.world_size, request.world_size),
        ("config", lambda r: r.config_digest, request.config_digest),
        ("datasets", lambda r: sorted(r.dataset_digests), sorted(request.dataset_digests)),
        ("code", lambda r: r.code_digest, first.code_digest),
        ("layout", lambda r: r.layout, first.layout),
        ("data cursor", lambda r: r.cursor, first.cursor),
        ("generators' states kept", lambda r: r.rng is None, first.rng is None),
    )
    for receipt in receipts:
        for what, of, expected in rules:
            if of(receipt) != expected:
                raise _disagree(f"{request.name}: rank {receipt.rank} has {what} {of(receipt)}, not {expected}")
        if receipt.items_planned != receipt.items_written:
            raise _disagree(
                f"{request.name}: rank {receipt.rank} planned {receipt.items_planned} items "
                f"and wrote {receipt.items_written}"
            )
    paths = [file.path for receipt in receipts for file in receipt.files]
    if len({*paths}) != len(paths):
        raise _disagree(f"{request.name}: two ranks claim the same file")


def _refuse_missing_files(store: ObjectStore, request: CommitRequest, written: Sequence[_Written]) -> None:
    prefix = checkpoint_prefix(request.run_id, request.name)
    for item in written:
        for file in item.receipt.files:
            try:
                size = store.size(f"{prefix}/{file.path}")
            except NotFound:
                size = None
            if size != file.size_bytes:
                raise CommandRejected(
                    f"{request.name}: {file.path} of rank {item.receipt.rank} has {size} bytes, "
                    f"its receipt says {file.size_bytes}",
                    reason="RECEIPTS_INCOMPLETE",
                )


def _manifest(request: CommitRequest, written: Sequence[_Written]) -> Manifest:
    receipts = [item.receipt for item in written]
    shards = [file for receipt in receipts for file in receipt.files]
    files = sorted([*shards, *(item.record for item in written)], key=lambda file: file.path)
    return Manifest(
        run_id=request.run_id,
        step=request.name.step,
        epoch=request.name.epoch,
        nonce=request.name.nonce,
        world_size=request.world_size,
        layout=receipts[0].layout,
        config_digest=request.config_digest,
        code_digest=receipts[0].code_digest,
        dataset_digests=tuple(sorted(request.dataset_digests)),
        files=tuple(files),
        rng=tuple(receipt.rng for receipt in receipts if receipt.rng is not None),
        cursor=receipts[0].cursor,
        parent=request.parent,
        metrics=_finite(request.metrics),
        size_bytes=sum(file.size_bytes for file in files),
    )


def _put_manifest(store: ObjectStore, key: str, data: bytes) -> None:
    try:
        store.put_if_absent(key, data)
    except AlreadyExists:
        if store.get(key, limit_bytes=MAX_MANIFEST_BYTES) != data:
            raise CommandRejected(f"{key} is there with other content: its nonce was used twice") from None
        # Who wrote it may have died before its name was durable.
        prefix = key.rpartition("/")[0]
        store.settle(prefix)
        store.anchor(prefix)


def _marker(request: CommitRequest, manifest_digest: str, size_bytes: int, samples_consumed: int) -> Commit:
    return fitted(
        Commit(
            epoch=request.name.epoch,
            nonce=request.name.nonce,
            step=request.name.step,
            path=request.name.path,
            manifest_digest=manifest_digest,
            parent=request.parent,
            size_bytes=size_bytes,
            world_size=request.world_size,
            samples_consumed=samples_consumed,
            config_digest=request.config_digest,
            dataset_digests=tuple(sorted(request.dataset_digests)),
            metrics=_finite(request.metrics),
        )
    )


def _finite(metrics: Sequence[MetricValue]) -> tuple[MetricValue, ...]:
    return tuple(metric for metric in metrics if math.isfinite(metric.value))


def _disagree(message: str) -> CommandRejected:
    return CommandRejected(message, reason="RECEIPTS_DISAGREE")
