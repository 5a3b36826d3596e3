"""``trackway checkpoint``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trackway.cli.failures import RUN_FAILED
from trackway.cli.output import show_list, show_one
from trackway.cli.session import Session, common_options
from trackway.cli.tables import Column, size

if TYPE_CHECKING:
    from trackway_common.events import CheckpointRef

    from trackway.client.resources import Checkpoint, CheckpointCheck


def _entry(parent: CheckpointRef | None) -> str:
    """A checkpoint as the first column names it."""
    return f"s{parent.step}-e{parent.epoch}-{parent.nonce}" if parent else ""


_COLUMNS: tuple[Column[Checkpoint], ...] = (
    Column("CHECKPOINT", lambda checkpoint: checkpoint.name.rpartition("/")[2]),
    Column("PHASE", lambda checkpoint: checkpoint.phase),
    Column("PARENT", lambda checkpoint: _entry(checkpoint.parent)),
    Column("STEP", lambda checkpoint: checkpoint.ref.step),
    Column("RANKS", lambda checkpoint: checkpoint.world_size),
    Column("SIZE", lambda checkpoint: size(checkpoint.size_bytes)),
    Column("COMMITTED", lambda checkpoint: checkpoint.committed_at),
)


@click.group()
def checkpoint() -> None:
    """Look at and verify checkpoints."""


@checkpoint.command("list")
@click.argument("run")
@common_options
def list_(session: Session, run: str) -> None:
    """List a run's checkpoints, newest commit first."""
    with session.connect() as client:
        show_list(session.output, client.checkpoints(run), _COLUMNS, none="The run has no checkpoints yet.")


@checkpoint.command()
@click.argument("name", metavar="RUN/STEP")
@common_options
def show(session: Session, name: str) -> None:
    """Show a checkpoint. A step means its newest committed one; RUN/s40-e1-... names one exactly."""
    with session.connect() as client:
        found = client.checkpoint(name)
    show_one(session.output, found, _details(found))


@checkpoint.command()
@click.argument("name", metavar="RUN/STEP")
@common_options
def verify(session: Session, name: str) -> None:
    """Read every byte of a checkpoint and compare it with its manifest."""
    with session.connect() as client:
        checked = client.verify_checkpoint(name)
    show_one(session.output, checked, _check_details(checked))
    if not checked.ok:
        raise click.exceptions.Exit(RUN_FAILED)


def _details(checkpoint: Checkpoint) -> list[tuple[str, object]]:
    from trackway.cli.run_views import checkpoint_text

    return [
        ("checkpoint", checkpoint.name),
        ("phase", checkpoint.phase),
        ("step", checkpoint.ref.step),
        ("attempt's epoch", checkpoint.ref.epoch),
        ("manifest", checkpoint.ref.manifest_digest),
        ("parent", checkpoint_text(checkpoint.parent)),
        ("path", checkpoint.path),
        ("size", size(checkpoint.size_bytes)),
        ("ranks", checkpoint.world_size),
        ("samples consumed", checkpoint.samples_consumed),
        ("config", checkpoint.config_digest),
        *(("dataset", digest) for digest in checkpoint.dataset_digests),
        ("committed", checkpoint.committed_at),
    ]


def _check_details(checked: CheckpointCheck) -> list[tuple[str, object]]:
    return [
        ("ok", checked.ok),
        ("files", checked.files),
        ("size", size(checked.size_bytes)),
        *(("problem", problem) for problem in checked.problems),
    ]
