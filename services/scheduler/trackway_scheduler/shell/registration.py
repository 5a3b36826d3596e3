"""Dataset snapshots: the manifest as a blob, its digest under the dataset's name."""

from __future__ import annotations

import asyncio

from trackway_common.clock import Clock
from trackway_common.commit import CommandContext
from trackway_common.errors import CommandRejected, FieldViolation, NotFound
from trackway_common.events import DatasetRegistered
from trackway_common.ids import dataset_stream
from trackway_common.object_store import BlobStore

from trackway_scheduler.domain.clipping import clipped
from trackway_scheduler.domain.commands import RegisterDataset
from trackway_scheduler.domain.manifests import Manifest, check_manifest
from trackway_scheduler.domain.names import find_snapshot, parse_snapshot_name
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
        if not project:
            description = "is required: the project that the snapshot belongs to"
            raise CommandRejected(
                f"project {description}", violations=(FieldViolation(field="project", description=description),)
            )
        try:
            manifest = check_manifest(data)
        except CommandRejected as refused:
            raise clipped(refused) from refused
        command = self._command(manifest, project)
        if validate_only:
            return _preview(manifest.name, command)
        await asyncio.to_thread(self._blobs.put, manifest.canonical)
        context = CommandContext(command_id=request_id, actor=caller)
        await self._records.perform(dataset_stream(manifest.name), command, context)
        return self.find(f"{manifest.name}@{manifest.digest}")

    def find(self, name: str) -> DatasetRegistered:
        """Return the snapshot that a name means; raises NotFound or CommandRejected."""
        wanted = parse_snapshot_name(name)
        state = self._records.dataset(wanted.dataset)
        if state is None:
            raise NotFound(f"there is no dataset {wanted.dataset!r}; `trackway dataset list` shows those there are")
        digest = find_snapshot(wanted, state)
        return next(snapshot for snapshot in state.snapshots if snapshot.manifest_digest == digest)

    async def manifest(self, snapshot: DatasetRegistered) -> bytes:
        """A snapshot's manifest, canonical JSON."""
        return await asyncio.to_thread(self._blobs.get, snapshot.manifest_digest)

    def _command(self, manifest: Manifest, project: str) -> RegisterDataset:
        return RegisterDataset(
            manifest_digest=manifest.digest,
            project=project,
            files=manifest.files,
            size_bytes=manifest.size_bytes,
            splits=manifest.splits,
            at=self._clock.now(),
        )


def _preview(name: str, command: RegisterDataset) -> DatasetRegistered:
    return DatasetRegistered(
        name=name,
        manifest_digest=command.manifest_digest,
        project=command.project,
        files=command.files,
        size_bytes=command.size_bytes,
        splits=command.splits,
        registered_at=command.at,
    )
