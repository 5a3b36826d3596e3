"""What a try works on, fetched by digest and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trackway_common.canonical import digest_bytes
from trackway_common.dataset_manifest import DatasetManifest, parse_manifest
from trackway_common.errors import CommandRejected
from trackway_common.evaluation_pack import (
    EvaluationPack,
    TaskInputs,
    TaskKind,
    TaskSpec,
    check_against,
    parse_pack,
    task_digest,
)
from trackway_common.object_store import open_store
from trackway_common.object_store.blobs import BlobStore
from trackway_common.object_store.port import ObjectStore

from trackway_evaluator.protocol import WorkRequest
from trackway_evaluator.worker.user_code import CONFIG_INVALID, source_digest, unpack


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedDataset:
    """A dataset of the run: its manifest, and the digest of the bytes that were read."""

    manifest: DatasetManifest
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Everything but the model."""

    store: ObjectStore
    pack: EvaluationPack
    datasets: Mapping[str, PinnedDataset]
    code: Path
    code_digest: str

    def task_digest(self, task: TaskSpec) -> str:
        """Digest of the task as it is executed here: by the files that were really imported and read."""
        source = self.code_digest if task.kind is TaskKind.COMMAND else source_digest(task.data)
        inputs = TaskInputs(dataset_digest=self.datasets[task.dataset].digest, data_source_digest=source)
        return task_digest(task, self.pack.decoding, inputs)


def gather(request: WorkRequest, code: Path) -> Inputs:
    """Fetch pack, manifests and code; the code's modules can be imported afterwards.

    Raises:
        CommandRejected: something is missing, damaged or does not fit the rest.
    """
    store = open_store(request.store_url)
    blobs = BlobStore(store)
    pack = parse_pack(blobs.get(request.pack_digest))
    if violations := check_against(pack, {dataset.name for dataset in request.datasets}):
        raise CommandRejected(f"{violations[0].field} {violations[0].description}", reason=CONFIG_INVALID)
    archive = blobs.get(request.code_archive_digest)
    unpack(archive, code)
    return Inputs(
        store=store,
        pack=pack,
        datasets={dataset.name: _dataset(blobs.get(dataset.manifest_digest)) for dataset in request.datasets},
        code=code,
        code_digest=digest_bytes(archive),
    )


def _dataset(manifest: bytes) -> PinnedDataset:
    return PinnedDataset(manifest=parse_manifest(manifest), digest=digest_bytes(manifest))
