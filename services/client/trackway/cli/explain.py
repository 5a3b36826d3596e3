"""``trackway explain``."""

from __future__ import annotations

import click

from trackway.cli.output import print_document
from trackway.cli.session import JSON, TABLE, Session, common_options


@click.command()
@click.argument("name", metavar="RUN[/ATTEMPT]")
@click.option("--json", "as_json", is_flag=True, help="Print what the explanation is made of.")
@click.option("--md", "as_markdown", is_flag=True, help="Print Markdown.")
@common_options
def explain(session: Session, name: str, as_json: bool, as_markdown: bool) -> None:
    """Explain why an attempt ended as it did, and what was decided then.

    RUN alone means its newest attempt.
    """
    if as_json and as_markdown:
        raise click.UsageError("--json and --md exclude each other")
    with session.connect() as client:
        explanation = client.explain(name)
    if as_markdown:
        click.echo(explanation.markdown.rstrip("\n"))
    elif as_json or session.output != TABLE:
        print_document(JSON if as_json else session.output, explanation.detail)
    else:
        click.echo(explanation.text.rstrip("\n"))
    tell_lag(explanation.records_behind)


def tell_lag(records_behind: int) -> None:
    """Say on stderr that an answer is older than the log."""
    if records_behind:
        click.echo(f"The history is {records_behind} records behind the log; ask again in a moment.", err=True)
