"""``trackway train submit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trackway.cli.failures import REFUSED
from trackway.cli.output import show_one
from trackway.cli.session import TABLE, Session, common_options

if TYPE_CHECKING:
    from trackway.client import TrackwayClient
    from trackway.client.resources import Run
    from trackway.client.submission import Overrides


@click.command()
@click.option("--dataset", "datasets", multiple=True, metavar="NAME[@DIGEST][:WEIGHT]", help="Replaces the spec's.")
@click.option("--config", type=click.Path(path_type=Path), help="Run spec, YAML.")
@click.option("--clone", default="", metavar="RUN", help="Submit an earlier run's inputs again, pinned as they were.")
@click.option("--compute", default="", metavar="CLASS", help="Compute class. Replaces the spec's.")
@click.option("--evaluation-pack", default="", metavar="NAME", help="Pack beside the spec, or a registered one.")
@click.option("--follow", "following", is_flag=True, help="Show what happens and return the run's exit code.")
@click.option("--validate-only", is_flag=True, help="Resolve and check every input; start nothing.")
@click.option("--request-id", default="", metavar="UUID7", help="Becomes the run's id; the same again is the same run.")
@common_options
def submit(
    session: Session,
    datasets: tuple[str, ...],
    config: Path | None,
    clone: str,
    compute: str,
    evaluation_pack: str,
    following: bool,
    validate_only: bool,
    request_id: str,
) -> None:
    """Submit a run: its spec, its code folder and its evaluation pack; or again what an earlier run was given."""
    from trackway.client.submission import Overrides

    if (config is None) == (not clone):
        raise click.UsageError("--config names a spec and --clone an earlier run: give one of them")

    overrides = Overrides(datasets=datasets, compute=compute, evaluation_pack=evaluation_pack)
    _check_request_id(request_id)
    with session.connect() as client:
        if config is None:
            run = client.clone(clone, overrides, request_id=request_id, validate_only=validate_only)
        else:
            run = _submit(client, config, overrides, request_id, validate_only=validate_only)
        _refuse(run)
        if following and not validate_only:
            _follow(session, client, run)
        else:
            _show(session, run, validate_only=validate_only)


def _submit(client: TrackwayClient, config: Path, overrides: Overrides, request_id: str, *, validate_only: bool) -> Run:
    from trackway.cli.progress import progress_bar

    with progress_bar() as progress:
        return client.submit(config, overrides, request_id=request_id, validate_only=validate_only, progress=progress)


def _check_request_id(request_id: str) -> None:
    from trackway_common.ids import is_uuid7

    if request_id and not is_uuid7(request_id):
        raise click.BadParameter(f"{request_id!r} is no UUID of version 7", param_hint="--request-id")


def _refuse(run: Run) -> None:
    """A run that was refused is told like every other refusal, also when the answer holds it as a run."""
    if not run.violations and run.phase != "REFUSED":
        return
    for violation in run.violations:
        click.echo(f"{violation.field}: {violation.description}", err=True)
    click.echo(run.message or "Nothing was started. Correct what is named above and try again.", err=True)
    raise click.exceptions.Exit(REFUSED)


def _show(session: Session, run: Run, *, validate_only: bool) -> None:
    from trackway.cli.run_views import run_details

    show_one(session.output, run, run_details(run))
    if session.output == TABLE:
        if validate_only:
            click.echo("Every input resolves. Nothing was started.", err=True)
        else:
            click.echo(f"Follow it with `trackway train watch {run.run_id}`.", err=True)


def _follow(session: Session, client: TrackwayClient, run: Run) -> None:
    from trackway.cli.follow import exit_code, follow, show_line, show_line_aside, tell_end
    from trackway.cli.run_views import run_details

    click.echo(f"Run {run.run_id}", err=True)
    ended = follow(client, run.run_id, show_line if session.output == TABLE else show_line_aside)
    if session.output != TABLE:
        show_one(session.output, ended, run_details(ended))
    tell_end(ended)
    raise click.exceptions.Exit(exit_code(ended))
