"""``trackway attempt``: the cluster's tries at a run."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import click

from trackway.cli.output import show_list, show_one
from trackway.cli.session import Session, common_options
from trackway.cli.tables import Column

if TYPE_CHECKING:
    from trackway.client.resources import Attempt, SecondLook

_COLUMNS: tuple[Column[Attempt], ...] = (
    Column("ATTEMPT", lambda attempt: f"{attempt.run_id}/{attempt.attempt}"),
    Column("STATE", lambda attempt: attempt.state),
    Column("REASON", lambda attempt: known(attempt.reason)),
    Column("POOL", lambda attempt: attempt.pool),
    Column("STARTED", lambda attempt: attempt.started_at),
    Column("STEPS", lambda attempt: f"{attempt.first_step}-{attempt.last_step}" if attempt.last_step else ""),
    Column("GPU SECONDS", lambda attempt: attempt.gpu_seconds),
)


@click.group()
def attempt() -> None:
    """Look at attempts: one try of the cluster at a run each."""


@attempt.command("list")
@click.argument("run", required=False)
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@common_options
def list_(session: Session, run: str | None, limit: int) -> None:
    """List a run's attempts, or those of all runs; newest first."""
    with session.connect() as client:
        found = itertools.islice(client.attempts(run), limit)
        show_list(session.output, found, _COLUMNS, none="There are no attempts yet.")


@attempt.command()
@click.argument("name", metavar="RUN/ATTEMPT")
@common_options
def show(session: Session, name: str) -> None:
    """Show an attempt's receipt."""
    with session.connect() as client:
        found = client.attempt(name)
    show_one(session.output, found, _details(found))


@attempt.command()
@click.argument("name", metavar="RUN/ATTEMPT")
@common_options
def reclassify(session: Session, name: str) -> None:
    """Judge an ended attempt again with its agent's classifier.

    Another verdict of a newer classifier is recorded beside the first. What was decided on the first verdict stays.
    """
    with session.connect() as client:
        look = client.reclassify(name)
    show_one(session.output, look, _second_look(look))


def known(word: str) -> str:
    """The word, empty when it stands for nothing."""
    return "" if word == "UNSPECIFIED" else word


def _second_look(look: SecondLook) -> list[tuple[str, object]]:
    return [
        ("before", f"{look.before} (classifier {look.version_before})"),
        ("now", f"{look.reason} (classifier {look.classifier_version})"),
        ("confidence", look.confidence),
        ("cause", look.cause),
        ("recorded", "yes" if look.recorded else "no: nothing newer to say"),
    ]


def _details(attempt: Attempt) -> list[tuple[str, object]]:
    from trackway.cli.run_views import checkpoint_text

    return [
        ("attempt", f"{attempt.run_id}/{attempt.attempt}"),
        ("state", attempt.state),
        ("reason", known(attempt.reason)),
        ("domain", known(attempt.domain)),
        ("cause", attempt.cause),
        ("pool", attempt.pool),
        ("accelerators", attempt.accelerators),
        ("gpu seconds", attempt.gpu_seconds),
        ("started", attempt.started_at),
        ("ended", attempt.ended_at),
        ("steps", f"{attempt.first_step}-{attempt.last_step}"),
        ("resumed from", checkpoint_text(attempt.resumed_from)),
        ("last committed", checkpoint_text(attempt.last_committed)),
        *((f"receipt.{name}", value) for name, value in attempt.receipt.items()),
    ]
