"""``trackway explain``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trackway.cli.output import print_document
from trackway.cli.session import JSON, TABLE, YAML, Session, options

if TYPE_CHECKING:
    from collections.abc import Mapping

TEXT, MARKDOWN, POSTMORTEM = "text", "markdown", "postmortem"


@click.command()
@click.argument("name", metavar="RUN[/ATTEMPT]")
@click.option("--json", "chosen", flag_value=JSON, help="Short for -o json.")
@click.option("--md", "chosen", flag_value=MARKDOWN, help="Short for -o markdown.")
@click.option("--postmortem", "chosen", flag_value=POSTMORTEM, help="A filled-in incident report, Markdown.")
@click.option("--log", type=click.Path(path_type=Path), metavar="DIR", help="Explain from an exported log, offline.")
@click.option("--store", type=click.Path(path_type=Path), help="With --log: object store's folder to read blobs from.")
@options(TEXT, MARKDOWN, POSTMORTEM, JSON, YAML, TABLE)
def explain(session: Session, name: str, chosen: str | None, log: Path | None, store: Path | None) -> None:
    """Explain why an attempt ended as it did, and what was decided then.

    RUN alone means its newest attempt; -o table is another name of text. With --log nothing is asked of any
    service: the folder is what `trackway log export` made.
    """
    if store and not log:
        raise click.UsageError("--store goes with --log")
    output = chosen or (TEXT if session.output == TABLE else session.output)
    if log:
        _print(output, *_from_copy(log, store, name))
        return
    with session.connect() as client:
        explanation = client.explain(name)
    texts = {TEXT: explanation.text, MARKDOWN: explanation.markdown, POSTMORTEM: explanation.postmortem}
    _print(output, texts, explanation.detail)
    tell_lag(explanation.records_behind)


def tell_lag(records_behind: int) -> None:
    """Say on stderr that an answer is older than the log."""
    if records_behind:
        click.echo(f"The history is {records_behind} records behind the log; ask again in a moment.", err=True)


def _print(output: str, texts: Mapping[str, str], detail: object) -> None:
    if output in texts:
        click.echo(texts[output].rstrip("\n"))
    else:
        print_document(output, detail)


def _from_copy(folder: Path, store: Path | None, name: str) -> tuple[Mapping[str, str], object]:
    """The same explanation by the same code; waits are measured to when the copy was made."""
    from trackway_common.codec import fact_fields
    from trackway_common.history.explain import as_markdown, as_postmortem, as_text
    from trackway_common.log_copy.explaining import explain_copy
    from trackway_common.log_copy.reader import LogCopy

    from trackway.client.names import parse_attempt, run_id

    parsed = parse_attempt(name)
    with closing(LogCopy(folder, store)) as copy:
        explanation = explain_copy(copy, run_id(parsed.run, copy.run_id), parsed.attempt or None)
    texts = {
        TEXT: as_text(explanation),
        MARKDOWN: as_markdown(explanation),
        POSTMORTEM: as_postmortem(explanation),
    }
    return texts, fact_fields(explanation)
