"""The blobs an evaluation reads and leaves: packs, code, shards, environment reports. Blocks on storage."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trackway_common.canonical import digest_bytes
from trackway_common.errors import CommandRejected
from trackway_common.evaluation_pack import EvaluationPack, TaskInputs, TaskKind, TaskSpec, parse_pack, task_digest
from trackway_common.events import RunSpec, SampleShard
from trackway_common.ids import Digest
from trackway_common.object_store import BlobStore

from trackway_evaluator.protocol import WrittenShard


@dataclass(frozen=True, slots=True)
class EvidenceStore:
    """Blobs by digest."""

    blobs: BlobStore

    def pack(self, digest: str) -> EvaluationPack:
        """The pack of a digest.

        Raises:
            CommandRejected: there is none, or it is no pack.
        """
        return parse_pack(self.blobs.get(digest))

    def expected_digests(self, pack: EvaluationPack, spec: RunSpec) -> dict[str, str]:
        """Per task the digest that it must have been executed with, from what the run pinned.

        Raises:
            CommandRejected: the archive or a function's source in it is missing.
        """
        archive = self.blobs.get(spec.code.archive_digest)
        datasets = {dataset.name: dataset.manifest_digest for dataset in spec.datasets}
        return {task.id: task_digest(task, pack.decoding, _inputs(task, datasets, archive)) for task in pack.tasks}

    def put_report(self, environment_json: str) -> Digest:
        """Keep an environment report."""
        return self.blobs.put(environment_json.encode())

    def put_shards(self, shards: Iterable[WrittenShard], folder: Path) -> tuple[SampleShard, ...]:
        """Keep the shards that a try wrote below its evaluation's folder.

        Raises:
            CommandRejected: a file is missing or not what the try said it was.
        """
        return tuple(self._put_shard(shard, folder / shard.path) for shard in shards)

    def _put_shard(self, shard: WrittenShard, path: Path) -> SampleShard:
        try:
            digest = self.blobs.put_file(path)
        except FileNotFoundError as error:
            raise CommandRejected(f"shard {shard.path} is missing", reason="SHARD_DAMAGED") from error
        if digest != f"sha256:{shard.sha256}":
            raise CommandRejected(f"shard {shard.path} changed after it was written", reason="SHARD_DAMAGED")
        return SampleShard(
            task=shard.task, kind=shard.kind, digest=digest, rows=shard.rows, size_bytes=shard.size_bytes
        )


def _inputs(task: TaskSpec, datasets: dict[str, str], archive: bytes) -> TaskInputs:
    source = digest_bytes(archive) if task.kind is TaskKind.COMMAND else _source_digest(archive, task.data)
    return TaskInputs(dataset_digest=datasets.get(task.dataset, ""), data_source_digest=source)


def _source_digest(archive: bytes, reference: str) -> str:
    """Digest of the source file of ``module:function`` in a code archive."""
    module = reference.partition(":")[0].replace(".", "/")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = {member.name.removeprefix("./"): member for member in tar if member.isfile()}
        # A package goes before a module of the same name, as in an import.
        for name in (f"{module}/__init__.py", f"{module}.py"):
            source = tar.extractfile(members[name]) if name in members else None
            if source is not None:
                return digest_bytes(source.read())
    raise CommandRejected(f"the code archive holds no source of {reference}", reason="CONFIG_INVALID")
