"""Dataset snapshots: the manifest as a blob, its digest under the dataset's name."""

from __future__ import annotations

import asyncio

from trackway_common.clock import Clock
from trackway_common.commit import CommandContext
from trackway_common.errors import CommandRejected, FieldViolation
from trackway_common.events import DatasetRegistered
from trackway_common.fields import Fields
from trackway_common.ids import dataset_stream
from trackway_common.object_store import BlobStore

from trackway_scheduler.domain.clipping import clipped
from trackway_scheduler.domain.commands import RegisterDataset
from trackway_scheduler.domain.datasets import SnapshotName, find_snapshot, parse_snapshot_name
from trackway_scheduler.domain.manifests import Manifest, check_manifest
from trackway_scheduler.domain.registry import register_dataset
from trackway_scheduler.domain.spec.parts import name
from trackway_scheduler.domain.state import DatasetState, initial
from trackway_scheduler.shell.records import Records


class DatasetDesk:
    """Registers and finds snapshots."""

    def __init__(self, records: Records, blobs: BlobStore, clock: Clock) -> None:
        self._records = records
        self._blobs = blobs
        self._clock = clock

    async def register(
        self, data: bytes, *, project: str, request_id: str, caller: str, validate_only: bool
    ) -> DatasetRegistered:
        """Register a manifest; the same one again changes nothing.

        Raises:
            CommandRejected: the manifest or the project is wrong; every field is named.
        """
        _check_project(project)
        try:
            manifest = check_manifest(data)
        except CommandRejected as refused:
            raise clipped(refused) from refused
        command, stream = self._command(manifest), dataset_stream(project, manifest.name)
        if validate_only:
            return _preview(stream, command)
        await asyncio.to_thread(self._blobs.put, manifest.canonical)
        context = CommandContext(command_id=request_id, actor=caller)
        await self._records.perform(stream, command, context)
        return find_snapshot(
            SnapshotName(project=project, dataset=manifest.name, digest=manifest.digest), self._records.datasets
        )

    def find(self, name: str) -> DatasetRegistered:
        """Return the snapshot that a name means; raises NotFound or CommandRejected."""
        return find_snapshot(parse_snapshot_name(name), self._records.datasets)

    async def manifest(self, snapshot: DatasetRegistered) -> bytes:
        """A snapshot's manifest, canonical JSON."""
        return await asyncio.to_thread(self._blobs.get, snapshot.manifest_digest)

    def _command(self, manifest: Manifest) -> RegisterDataset:
        return RegisterDataset(
            manifest_digest=manifest.digest,
            files=manifest.files,
            size_bytes=manifest.size_bytes,
            splits=manifest.splits,
            at=self._clock.now(),
        )


def _check_project(project: str) -> None:
    found: list[FieldViolation] = []
    name(Fields({"project": project} if project else {}, "", found, ("project",)), "project")
    if found:
        raise CommandRejected(f"project {found[0].description}", violations=tuple(found))


def _preview(stream: str, command: RegisterDataset) -> DatasetRegistered:
    before = initial(stream)
    assert isinstance(before, DatasetState)
    (registered,) = register_dataset(before, command)
    return registered
