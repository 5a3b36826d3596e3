"""Copies the log into a folder, straight from the broker; needs what `pip install 'trackway[server]'` adds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from trackway_common.clock import Clock, SystemClock
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.event_log import EventLog
from trackway_common.ids import is_uuid7
from trackway_common.log_copy.export import Copying, full_run_id
from trackway_common.log_copy.manifest import Manifest, Scope
from trackway_common.log_copy.writer import LogCopyWriter, files_of, publish, writing

from trackway.client.settings import read_settings
from trackway.local.state import read_endpoints

Blob = Callable[[str], bytes]
"""Gives the bytes of a digest; raises NotFound when no blob has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """What is copied."""

    scope: Scope = field(default_factory=Scope)
    telemetry_bytes: int = 0
    """Most telemetry; 0 copies none."""
    blob_bytes: int = 0
    """Most bytes of blobs; 0 copies none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written."""

    folder: Path
    digest: str
    """Of the manifest, which names every file's digest: two copies with one digest are one."""
    runs: int
    records: int
    blobs: int
    telemetry_left_out: int
    blobs_left_out: int


def export_log(
    open_log: Callable[[], EventLog], folder: Path, options: ExportOptions, *, blob: Blob, clock: Clock | None = None
) -> Exported:
    """Copy the log into a new folder; on any failure nothing is at that name.

    Args:
        open_log: called once a loop runs.
        blob: asked for every digest that a record names.
    Raises:
        CommandRejected: the folder is not empty, or there is no such run.
        Unavailable: the broker, or the service that blobs come from, does not answer.
    """
    with writing(folder) as partial:
        exported_at = (clock or SystemClock()).now()
        writer = LogCopyWriter(partial)
        copying = asyncio.run(_copy(open_log, writer, options))
        blobs, left_out = _copy_blobs(writer, blob, options.blob_bytes)
        runs = [line for run_id, line in copying.lines.lines.items() if _copied(copying, run_id)]
        writer.seal(runs)
        manifest = Manifest(
            exported_at=exported_at,
            made_by=f"trackway {version('trackway')}",
            scope=copying.scope,
            segments=writer.segments(),
            files=files_of(partial),
            telemetry_left_out=copying.telemetry_left_out,
            blobs_left_out=left_out,
        )
        digest = publish(partial, folder, manifest)
    return Exported(
        folder=folder,
        digest=digest,
        runs=len(runs),
        records=sum(segment.records for segment in manifest.segments),
        blobs=blobs,
        telemetry_left_out=manifest.telemetry_left_out,
        blobs_left_out=left_out,
    )


def log_opener(address: str, state: Path | None) -> Callable[[], EventLog]:
    """How to reach the log: at the address, as the services' environment says, or the local stack's.

    Raises:
        CommandRejected: nothing says where it is, or this installation can't speak to it.
    """
    try:
        from trackway_common.environment import read_settings as read_service_settings
        from trackway_common.kafka_log import KafkaEventLog
        from trackway_common.settings import KafkaSettings, LogSettings
    except ImportError as error:
        raise CommandRejected(f"reading the log needs more ({error}): pip install 'trackway[server]'") from error
    told = read_settings()
    if not address and not state and told.log:
        kafka = read_service_settings(LogSettings).kafka
    else:
        address = address or read_endpoints(state or told.state).get("kafka", "")
        if not address:
            raise CommandRejected("no local stack runs; say where the log is: --kafka host:port")
        kafka = KafkaSettings(bootstrap=address)
    return lambda: KafkaEventLog(kafka)


async def _copy(open_log: Callable[[], EventLog], writer: LogCopyWriter, options: ExportOptions) -> Copying:
    log = open_log()
    try:
        scope = options.scope
        if scope.run_id and not is_uuid7(scope.run_id):
            scope = Scope(run_id=await full_run_id(log, scope.run_id))
        copying = Copying(log, writer, scope, options.telemetry_bytes)
        await copying.run()
    finally:
        await log.close()
    if scope.run_id and scope.run_id not in copying.lines.lines:
        raise NotFound(f"the log has no run {scope.run_id}; `trackway train list` shows them")
    if scope.project and not any(line.project == scope.project for line in copying.lines.lines.values()):
        raise NotFound(f"the log has no run of project {scope.project!r}; `trackway train list` shows projects")
    return copying


def _copied(copying: Copying, run_id: str) -> bool:
    scope = copying.scope
    return scope.everything or run_id == scope.run_id or copying.lines.project(run_id) == scope.project


def _copy_blobs(writer: LogCopyWriter, blob: Blob, room: int) -> tuple[int, int]:
    """Copy what is a blob; many a digest is of something else, such as a checkpoint's manifest or a config."""
    copied = left_out = 0
    if not room:
        return 0, 0
    for digest in sorted(writer.digests):
        try:
            data = blob(digest)
        except NotFound:
            continue
        if len(data) > room:
            left_out += 1
            continue
        room -= len(data)
        if writer.blobs.put(data) != digest:
            raise CommandRejected(f"blob {digest} is damaged in the store; restore it, or export without --blobs")
        copied += 1
    return copied, left_out
