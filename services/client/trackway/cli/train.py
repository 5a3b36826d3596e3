"""``trackway train``: runs."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import click

from trackway.cli.lazy import LazyCommand, LazyGroup
from trackway.cli.output import document, print_stream_item, show_list, show_one
from trackway.cli.session import TABLE, Session, common_options

if TYPE_CHECKING:
    from trackway.client.resources import LogLine, RunFact

_PHASES = ("QUEUED", "RUNNING", "EVALUATING", "HELD", "SUCCEEDED", "FAILED", "CANCELLED", "REFUSED")


class _TrainGroup(LazyGroup):
    table = {
        "submit": LazyCommand("trackway.cli.submit:submit", "Submit a run."),
        "list": LazyCommand("trackway.cli.train:list_", "List runs, newest first."),
        "show": LazyCommand("trackway.cli.train:show", "Show a run with its inputs and decisions."),
        "watch": LazyCommand("trackway.cli.train:watch", "Show what happens to a run until it ends."),
        "goodput": LazyCommand("trackway.cli.goodput:goodput", "Show where the time of a run's attempts went."),
        "logs": LazyCommand("trackway.cli.train:logs", "Print what an attempt's ranks print."),
        "cancel": LazyCommand("trackway.cli.train:cancel", "Stop a run."),
        "release": LazyCommand("trackway.cli.train:release", "Let a held run go on."),
    }


@click.group(cls=_TrainGroup)
def train() -> None:
    """Submit, watch, stop and release runs."""


@click.command("list")
@click.option("--project", default="-", help="Only of this project.")
@click.option("--phase", type=click.Choice(_PHASES, case_sensitive=False), help="Only in this phase.")
@click.option("--model-family", default="", help="Only of this model family.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@common_options
def list_(session: Session, project: str, phase: str | None, model_family: str, limit: int) -> None:
    """List runs, newest first."""
    from trackway_common.events import RunPhase

    from trackway.cli.run_views import RUN_COLUMNS

    chosen = RunPhase(phase) if phase else RunPhase.UNSPECIFIED
    with session.connect() as client:
        runs = client.list_runs(project=project, phase=chosen, model_family=model_family)
        show_list(session.output, itertools.islice(runs, limit), RUN_COLUMNS, none="There are no such runs.")


@click.command()
@click.argument("run")
@common_options
def show(session: Session, run: str) -> None:
    """Show a run with its inputs and decisions.

    RUN is its id or a unique beginning of it.
    """
    from trackway.cli.run_views import run_details

    with session.connect() as client:
        found = client.get_run(run)
    show_one(session.output, found, run_details(found))


@click.command()
@click.argument("run")
@click.option("--cursor", default="", help="Go on behind the fact that had this cursor.")
@common_options
def watch(session: Session, run: str, cursor: str) -> None:
    """Show what happens to a run until it ends, and return its exit code.

    With -o json one line of JSON per fact, each with the cursor to go on from.
    """
    from trackway.cli.follow import exit_code, follow, show_line, tell_end

    def show_document(fact: RunFact) -> None:
        print_stream_item(session.output, document(fact))

    with session.connect() as client:
        run_id = client.get_run(run).run_id
        ended = follow(client, run_id, show_line if session.output == TABLE else show_document, cursor)
    tell_end(ended)
    raise click.exceptions.Exit(exit_code(ended))


@click.command()
@click.argument("run")
@click.option("--rank", type=click.IntRange(min=0), help="Only of this rank.")
@click.option("-f", "--follow", is_flag=True, help="Go on until the attempt has ended.")
@common_options
def logs(session: Session, run: str, rank: int | None, follow: bool) -> None:
    """Print what an attempt's ranks printed.

    RUN means its newest attempt; write RUN/ATTEMPT for another one.
    """
    printed = False
    with session.connect() as client:
        for line in client.logs(run, rank=rank, follow=follow):
            printed = True
            if session.output == TABLE:
                click.echo(_log_text(line), err=line.stream == "stderr")
            else:
                print_stream_item(session.output, document(line))
    if not printed:
        click.echo("Nothing was printed yet.", err=True)


@click.command()
@click.argument("run")
@click.option("--reason", default="", help="Why, for those who read the history.")
@click.option("--request-id", default="", metavar="UUID7", help="The same again asks for the same.")
@common_options
def cancel(session: Session, run: str, reason: str, request_id: str) -> None:
    """Stop a run. Its ranks are told to end; what is committed stays."""
    from trackway.cli.run_views import run_details

    with session.connect() as client:
        cancelled = client.cancel(run, reason=reason, request_id=request_id)
    show_one(session.output, cancelled, run_details(cancelled))


@click.command()
@click.argument("run")
@click.option("--reason", required=True, help="What was done about what it was held for.")
@click.option("--request-id", default="", metavar="UUID7", help="The same again asks for the same.")
@click.option("--validate-only", is_flag=True, help="Only say whether it could be released.")
@common_options
def release(session: Session, run: str, reason: str, request_id: str, validate_only: bool) -> None:
    """Let a held run go on: to its next attempt, or to its evaluation again.

    Budgets that count without progress begin anew; those over the run's life do not.
    """
    from trackway.cli.run_views import run_details

    with session.connect() as client:
        found = client.release(run, reason=reason, request_id=request_id, validate_only=validate_only)
    show_one(session.output, found, run_details(found))


def _log_text(line: LogLine) -> str:
    return f"[{line.rank}] {line.text}"
