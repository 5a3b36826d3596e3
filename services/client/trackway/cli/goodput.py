"""``trackway train goodput``."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from trackway.cli.explain import tell_lag
from trackway.cli.output import document, print_document
from trackway.cli.session import TABLE, Session, common_options
from trackway.cli.tables import Column, moment, print_table

if TYPE_CHECKING:
    from trackway_common.history.goodput import AttemptGoodput, Goodput, GoodputPart

    Row: TypeAlias = AttemptGoodput | Goodput
    """An attempt, or all of them."""

_TITLES = {
    "productive": "PRODUCTIVE",
    "startup": "STARTUP",
    "restore": "RESTORE",
    "data_wait": "DATA WAIT",
    "stall": "CHECKPOINT STALL",
    "lost": "ROLLED BACK",
    "hang": "HANG",
    "idle": "IDLE",
    "unattributed": "UNATTRIBUTED",
    "uncommitted": "NOT COMMITTED YET",
}
_UNMEASURED = (
    "opened no session: waits for data, stalls and restores can't be told from training there, and all that was kept "
    "counts as productive"
)


@click.command()
@click.argument("run", metavar="RUN[/ATTEMPT]")
@click.option("--log", type=click.Path(path_type=Path), metavar="DIR", help="Compute it from an exported log, offline.")
@common_options
def goodput(session: Session, run: str, log: Path | None) -> None:
    """Show where the time of a run's attempts went: productive, or lost to a cause.

    Seconds are accelerator-seconds from placement to end; time in the queue stands beside them. Attempts that still
    run are counted so far. With --log nothing is asked of any service: the folder is what `trackway log export` made.
    """
    if log:
        _show(session.output, _from_copy(log, run))
        return
    with session.connect() as client:
        answer = client.goodput(run)
    _show(session.output, answer.goodput)
    tell_lag(answer.records_behind)


def _from_copy(folder: Path, name: str) -> Goodput:
    """The same by the same code; attempts that still ran are counted until the copy was made."""
    from trackway_common.history.fold import fold_run
    from trackway_common.history.goodput import goodput_of
    from trackway_common.log_copy.reader import LogCopy

    from trackway.client.names import parse_attempt, run_id

    parsed = parse_attempt(name)
    with closing(LogCopy(folder)) as copy:
        found = run_id(parsed.run, copy.run_id)
        history = fold_run(found, copy.commits(found))
        return goodput_of(history, as_of=copy.manifest.exported_at, only=parsed.attempt or None)


def _show(output: str, found: Goodput) -> None:
    if output == TABLE:
        _print(found)
    else:
        print_document(output, document(found))


def _print(found: Goodput) -> None:
    if not found.attempts:
        click.echo("No attempt was placed yet.", err=True)
        return
    rows: list[Row] = [*found.attempts, found]
    print_table(_columns(found), rows)
    click.echo()
    for line in _remarks(found):
        click.echo(line)


def _columns(found: Goodput) -> list[Column[Row]]:
    """The whole, and every part that the run has anything of."""
    present = [part.name for part in found.parts if part.seconds > 0]
    return [
        Column("ATTEMPT", _number),
        Column("ENDED BY", _ended_by),
        Column("SECONDS", lambda row: f"{row.seconds:.1f}"),
        *(_use(name) for name in present),
    ]


def _use(name: str) -> Column[Row]:
    return Column(_TITLES.get(name, name.upper()), lambda row: _amount(row.parts, name))


def _amount(parts: tuple[GoodputPart, ...], name: str) -> str:
    found = next((part for part in parts if part.name == name), None)
    return f"{found.seconds:.1f} ({found.share:.1%})" if found and found.seconds > 0 else "-"


def _number(row: Row) -> str:
    number = getattr(row, "attempt", None)
    return "all" if number is None else str(number)


def _ended_by(row: Row) -> str:
    return str(getattr(row, "reason", ""))


def _remarks(found: Goodput) -> list[str]:
    lines = [f"In the queue: {found.queue_seconds:.1f} s."]
    if any(attempt.reason == "IN_PROGRESS" for attempt in found.attempts):
        lines.append(f"So far, at {moment(found.as_of)}.")
    if found.largest_loss:
        amount = _amount(found.parts, found.largest_loss)
        lines.append(f"Largest loss: {_TITLES[found.largest_loss].lower()}, {amount}. {found.hint}")
    unmeasured = [str(attempt.attempt) for attempt in found.attempts if not attempt.measured]
    if unmeasured:
        noun = "Attempt" if len(unmeasured) == 1 else "Attempts"
        lines.append(f"{noun} {', '.join(unmeasured)} {_UNMEASURED}.")
    return lines
