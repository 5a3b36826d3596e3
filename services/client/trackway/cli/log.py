"""``trackway log``: a copy of the log, for reading where no Trackway is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trackway.cli.failures import RUN_FAILED
from trackway.cli.output import show_list
from trackway.cli.session import TABLE, Session, common_options
from trackway.cli.tables import Column

if TYPE_CHECKING:
    from collections.abc import Callable

    from trackway_common.log_copy.index import RunLine

MIB = 1 << 20
_RUNS: tuple[Column[RunLine], ...] = (
    Column("RUN", lambda run: run.run_id),
    Column("PROJECT", lambda run: run.project),
    Column("MODEL FAMILY", lambda run: run.model_family),
    Column("PHASE", lambda run: run.phase),
    Column("SINCE", lambda run: run.phase_at),
    Column("ATTEMPTS", lambda run: run.attempt),
)


@click.group()
def log() -> None:
    """Copy the log into a folder, check and read such a copy."""


@log.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--run", default="", help="Only this run: its id or a unique beginning of it.")
@click.option("--project", default="", help="Only runs of this project.")
@click.option("--blobs", is_flag=True, help="Also what facts name by digest: specs, code, stacks.")
@click.option("--blob-limit", type=click.IntRange(min=1), default=1024, show_default=True, help="MiB of blobs.")
@click.option("--telemetry", is_flag=True, help="Also metrics, printed lines and heartbeats.")
@click.option("--telemetry-limit", type=click.IntRange(min=1), default=256, show_default=True, help="MiB of it.")
@click.option("--store", type=click.Path(path_type=Path), help="Object store's folder that blobs are read from.")
@click.option(
    "--kafka", default="", metavar="HOST:PORT", help="The log [default: TRACKWAY_KAFKA__*, else the stack's]."
)
@common_options
def export(
    session: Session,
    folder: Path,
    run: str,
    project: str,
    blobs: bool,
    blob_limit: int,
    telemetry: bool,
    telemetry_limit: int,
    store: Path | None,
    kafka: str,
) -> None:
    """Copy the log into a new folder DIR, with an index by stream.

    Without --run and --project all of it. `trackway explain RUN --log DIR` reads it with no Trackway at all.
    """
    from trackway_common.log_copy.manifest import Scope

    from trackway.log_export import ExportOptions, export_log, log_opener

    if run and project:
        raise click.UsageError("--run or --project, not both")
    options = ExportOptions(
        scope=Scope(run_id=run, project=project),
        telemetry_bytes=telemetry_limit * MIB if telemetry else 0,
        blob_bytes=blob_limit * MIB if blobs else 0,
    )
    with session.connect() as client:
        made = export_log(
            log_opener(kafka, session.state),
            folder.absolute(),
            options,
            blob=_from_store(store) if store else client.blob,
        )
    details: list[tuple[str, object]] = [
        ("folder", made.folder),
        ("digest", made.digest),
        ("runs", made.runs),
        ("records", made.records),
        ("blobs", made.blobs),
    ]
    details += [("telemetry left out", made.telemetry_left_out)] if made.telemetry_left_out else []
    details += [("blobs left out", made.blobs_left_out)] if made.blobs_left_out else []
    _show(session, {name: str(value) if isinstance(value, Path) else value for name, value in details})


@log.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default=TABLE, help="How to print.")
def verify(folder: Path, output: str) -> None:
    """Read every byte of a copy: digests, records, verdicts of the acceptance rule, index.

    Exit code 1 when something is not as it was written.
    """
    from trackway_common.log_copy.verify import verify as check

    found = check(folder)
    details = {
        "ok": found.ok,
        "digest": found.digest,
        "files": found.files,
        "size_bytes": found.size_bytes,
        "records": found.records,
        "rejected": found.rejected,
        "problems": list(found.problems),
    }
    session = Session(endpoint=None, state=None, output=output)
    _show(session, details)
    if not found.ok:
        raise click.exceptions.Exit(RUN_FAILED)


@log.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default=TABLE, help="How to print.")
def runs(folder: Path, output: str) -> None:
    """List the runs of a copy, oldest first, as they stood when it was made."""
    from contextlib import closing

    from trackway_common.log_copy.reader import LogCopy

    with closing(LogCopy(folder)) as copy:
        show_list(output, copy.runs(), _RUNS, none="There are no runs in it.")


def _show(session: Session, details: dict[str, object]) -> None:
    from trackway.cli.output import print_document
    from trackway.cli.tables import print_details

    if session.output == TABLE:
        print_details(list(details.items()))
    else:
        print_document(session.output, details)


def _from_store(folder: Path) -> Callable[[str], bytes]:
    from trackway_common.object_store.blobs import BlobStore
    from trackway_common.object_store.local import LocalObjectStore

    return BlobStore(LocalObjectStore(folder)).get
