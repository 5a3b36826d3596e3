"""``trackway up | down | status | logs``: the local stack."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trackway.cli.failures import OK, UNAVAILABLE

if TYPE_CHECKING:
    from trackway.local.status import StackStatus

state_option = click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="TRACKWAY_STATE",
    help="State folder of the stack; default: $TRACKWAY_STATE, else the user's state folder.",
)


@click.command()
@state_option
@click.option("--cpus", type=click.IntRange(min=1), help="Rank slots of the local pool; default: cores, at least 4.")
@click.option("--timeout", type=click.FloatRange(min=0), default=90.0, show_default=True, help="Seconds to wait.")
@click.option("--only", hidden=True, help="Start these children alone, separated by commas.")
def up(state: Path | None, cpus: int | None, timeout: float, only: str | None) -> None:
    """Start a local stack, or attach to the one that runs in the state folder."""
    from trackway.local.progress import endpoint_lines, progress_on
    from trackway.local.spec import StackOptions
    from trackway.local.state import state_folder
    from trackway.local.up import up as start

    options = StackOptions(cpus=cpus or max(4, os.cpu_count() or 1), only=_children(only))
    with progress_on() as progress:
        record = start(state_folder(state), options, progress=progress, timeout_s=timeout)
    for line in endpoint_lines(record.endpoints):
        click.echo(line)


@click.command()
@state_option
def down(state: Path | None) -> None:
    """Stop the stack and everything that it started; its state stays."""
    from trackway.local.down import down as stop
    from trackway.local.progress import progress_on
    from trackway.local.state import state_folder

    folder = state_folder(state)
    with progress_on() as progress:
        stopped = stop(folder, progress=progress)
    if stopped.was_running or stopped.leftovers:
        click.echo(f"stopped; state is kept in {folder.root}")
    else:
        click.echo(f"no stack runs in {folder.root}")


@click.command()
@state_option
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def status(state: Path | None, output: str) -> None:
    """Show how each part of the stack is; exit code 3 unless all of it is ready."""
    from trackway.cli.output import print_document
    from trackway.local.state import state_folder
    from trackway.local.status import read_status

    found = read_status(state_folder(state))
    if output == "table":
        _print_table(found)
    else:
        print_document(output, asdict(found))
    raise click.exceptions.Exit(OK if found.running and found.all_ready() else UNAVAILABLE)


@click.command()
@click.argument("name")
@state_option
@click.option("-f", "--follow", is_flag=True, help="Go on with lines as they come.")
@click.option("-n", "--lines", type=click.IntRange(min=0), default=100, show_default=True, help="Lines to begin with.")
def logs(name: str, state: Path | None, follow: bool, lines: int) -> None:
    """Print the log of a part of the stack, such as `scheduler`, `kafka` or `supervisor`."""
    from trackway.local.logs import read_log
    from trackway.local.state import state_folder

    for line in read_log(state_folder(state), name, lines=lines, follow=follow):
        click.echo(line)


def _children(only: str | None) -> frozenset[str] | None:
    from trackway.local.stack import CHILD_NAMES

    if only is None:
        return None
    chosen = frozenset(only.split(","))
    if unknown := chosen - set(CHILD_NAMES):
        raise click.UsageError(f"--only: unknown {', '.join(sorted(unknown))}; there are: {', '.join(CHILD_NAMES)}")
    return chosen


def _print_table(found: StackStatus) -> None:
    from trackway.cli.tables import Column, print_table
    from trackway.local.status import ChildStatus

    columns: tuple[Column[ChildStatus], ...] = (
        Column("NAME", lambda child: child.name),
        Column("STATE", lambda child: child.state),
        Column("PID", lambda child: child.process.pid if child.process else None),
        Column("RESTARTS", lambda child: child.restarts),
        Column("ENDPOINT", lambda child: child.endpoint),
        Column("SINCE", lambda child: child.since),
        Column("DETAIL", lambda child: child.detail),
    )
    print_table(columns, found.children)
    supervisor = f"process {found.supervisor.pid}" if found.supervisor else "none"
    click.echo(f"supervisor: {supervisor}; state folder: {found.folder}")
