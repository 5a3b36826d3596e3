"""``trackway explain``."""

from __future__ import annotations

import click

from trackway.cli.output import print_document
from trackway.cli.session import JSON, YAML, Session, options

TEXT, MARKDOWN = "text", "markdown"


@click.command()
@click.argument("name", metavar="RUN[/ATTEMPT]")
@options(TEXT, MARKDOWN, JSON, YAML)
def explain(session: Session, name: str) -> None:
    """Explain why an attempt ended as it did, and what was decided then.

    RUN alone means its newest attempt.
    """
    with session.connect() as client:
        explanation = client.explain(name)
    if session.output == TEXT:
        click.echo(explanation.text.rstrip("\n"))
    elif session.output == MARKDOWN:
        click.echo(explanation.markdown.rstrip("\n"))
    else:
        print_document(session.output, explanation.detail)
    tell_lag(explanation.records_behind)


def tell_lag(records_behind: int) -> None:
    """Say on stderr that an answer is older than the log."""
    if records_behind:
        click.echo(f"The history is {records_behind} records behind the log; ask again in a moment.", err=True)
