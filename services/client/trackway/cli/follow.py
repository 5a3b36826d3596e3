"""Follows a run until it ends or waits for a person, and returns its exit code."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from trackway.cli.failures import INTERRUPTED, OK, REFUSED, RUN_FAILED
from trackway.cli.tables import coloured, moment

if TYPE_CHECKING:
    from trackway.client import TrackwayClient
    from trackway.client.resources import Run, RunFact

Show = Callable[["RunFact"], None]


def follow(client: TrackwayClient, run_id: str, show: Show, cursor: str = "") -> Run:
    """Show the run's facts as they come and return the run as it then is.

    Ctrl-C ends the looking, never the run.
    """
    from trackway_common.events import RunPhase

    try:
        for fact in client.watch(run_id, cursor):
            show(fact)
            # The fact may be an old one: somebody may have released the run since.
            if fact.phase is RunPhase.HELD and (run := client.get_run(run_id)).phase is RunPhase.HELD:
                return run
        return client.get_run(run_id)
    except KeyboardInterrupt:
        click.echo(f"\nRun {run_id} goes on. Come back with `trackway train watch {run_id}`,", err=True)
        click.echo(f"or stop it with `trackway train cancel {run_id}`.", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None


def show_line(fact: RunFact) -> None:
    """Print a fact as one line for people."""
    click.echo(fact_line(fact))


def show_line_aside(fact: RunFact) -> None:
    """Print a fact as one line on stderr, where stdout is for a document."""
    click.echo(fact_line(fact), err=True)


def fact_line(fact: RunFact) -> str:
    """Time, phase and summary."""
    phase = coloured(fact.phase) + " " * (10 - len(fact.phase))
    return f"{moment(fact.occurred_at)[11:]}  {phase}  {fact.summary or fact.fact}"


def tell_end(run: Run) -> None:
    """Say on stderr how the run stands and what to do next."""
    from trackway_common.events import RunPhase

    click.echo(f"Run {run.run_id} {coloured(run.phase)}{_because(run)}", err=True)
    match run.phase:
        case RunPhase.SUCCEEDED if run.evaluation_id:
            click.echo(f"Its evaluation: trackway evaluation show {run.evaluation_id}", err=True)
        case RunPhase.FAILED | RunPhase.HELD if run.attempt:
            click.echo(f"Why: trackway explain {run.run_id}/{run.attempt}", err=True)


def exit_code(run: Run) -> int:
    """0 for a run that succeeded, 2 for a refused one, 1 for every other end and for one that is held."""
    from trackway_common.events import RunPhase

    match run.phase:
        case RunPhase.SUCCEEDED:
            return OK
        case RunPhase.REFUSED:
            return REFUSED
    return RUN_FAILED


def _because(run: Run) -> str:
    because = ": ".join(part for part in (run.reason, run.message) if part)
    return f" ({because})" if because else ""
