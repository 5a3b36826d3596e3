"""``trackway sql``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trackway.cli.explain import tell_lag
from trackway.cli.output import print_document
from trackway.cli.session import TABLE, Session, common_options
from trackway.cli.tables import Column, print_table

if TYPE_CHECKING:
    from trackway.client.resources import QueryResult


@click.command()
@click.argument("query")
@click.option("--max-rows", type=click.IntRange(1, 10_000), default=1000, show_default=True, help="At most so many.")
@common_options
def sql(session: Session, query: str, max_rows: int) -> None:
    """Run one SELECT over the read model, such as

    \b
    trackway sql "select run_id, attempt, termination_reason from training_attempts"
    """
    with session.connect() as client:
        result = client.query(query, max_rows=max_rows)
    if session.output == TABLE:
        print_table(_columns(result), result.rows)
    else:
        print_document(session.output, [dict(zip(result.columns, row, strict=True)) for row in result.rows])
    if result.truncated:
        click.echo(f"There are more rows; --max-rows shows more than {len(result.rows)}.", err=True)
    tell_lag(result.records_behind)


def _columns(result: QueryResult) -> list[Column[tuple[object, ...]]]:
    return [_column(i, name) for i, name in enumerate(result.columns)]


def _column(index: int, name: str) -> Column[tuple[object, ...]]:
    return Column(name, lambda row: row[index])
