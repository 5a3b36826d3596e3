"""Runs the corpus on one stack; keeps rows and logs: `python -m tests.faults.corpus.run [--group G]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.faults.corpus.expected import LABELS
from tests.faults.corpus.injections import INJECTIONS
from tests.faults.corpus.label import Label
from tests.faults.corpus.logs import keep_log, kept_log
from tests.faults.corpus.measured import measured_now, write_measured
from tests.faults.corpus.observed import observed
from tests.faults.corpus.play import Played, play
from tests.faults.corpus.report import page
from tests.faults.corpus.results import PAGE, RESULTS, log_file, rows_file
from tests.faults.corpus.row import Observed, Row, make_row, read_rows, write_rows
from tests.support.stack import Stack, running_stack

AT_ONCE = 3
PARTS = frozenset({"kafka", "ray", "scheduler", "trainer-agent", "checkpointer"})
"""What an attempt needs; two cores have enough to do."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", action="append", help="only faults of this group; may be given again")
    parser.add_argument("--only", action="append", help="only this fault; may be given again")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    chosen = [label for label in LABELS if _asked(label, asked.group, asked.only)]
    begun_s = time.monotonic()
    with _stack() as stack:
        rows = run(stack, chosen, asked.results)
    _keep(rows, asked.results)
    _tell(rows, time.monotonic() - begun_s)
    return 0


def _keep(fresh: Sequence[Row], results: Path) -> None:
    """Rows of before stay where no fresh ones are; the page is of the committed results only."""
    rows = {row.name: row for row in read_rows(rows_file(results))} | {row.name: row for row in fresh}
    write_rows(rows_file(results), rows.values())
    measured = measured_now()
    write_measured(results, measured)
    if results == RESULTS:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(read_rows(rows_file(results)), measured), encoding="utf-8")


def run(stack: Stack, labels: Sequence[Label], results: Path) -> list[Row]:
    """Play every fault, keep its log, and read there what came out."""
    together = [label for label in labels if not INJECTIONS[label.name].alone]
    alone = [label for label in labels if INJECTIONS[label.name].alone]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        rows = list(threads.map(lambda label: run_one(stack, label, results), together))
    _keep(rows, results)
    for label in alone:
        rows.append(run_one(stack, label, results))
        _keep(rows, results)
    return rows


def run_one(stack: Stack, label: Label, results: Path) -> Row:
    """Play one fault, keep its log, and read there what came out."""
    played = play(stack, label)
    print(f"{played.seconds:6.1f} s  {label.name} {played.trouble}", flush=True)
    return row_of(stack, played, results)


def row_of(stack: Stack, played: Played, results: Path) -> Row:
    """What the log says of a fault; a run that could not be submitted has none."""
    label = played.label
    if not played.run_id:
        return make_row(label, "", Observed(root={}), hurt=(), seconds=played.seconds)
    keep_log(stack, played.run_id, played.observations, log_file(results, label.name))
    with kept_log(results, label.name) as copy:
        seen = observed(played.run_id, label.attempt, copy.commits(played.run_id))
    return make_row(label, played.run_id, seen, hurt=played.hurt, seconds=played.seconds)


@contextmanager
def _stack() -> Iterator[Stack]:
    with tempfile.TemporaryDirectory(prefix="corpus-stack-", ignore_cleanup_errors=True) as folder:
        yield from running_stack(Path(folder), PARTS)


def _asked(label: Label, groups: Sequence[str] | None, names: Sequence[str] | None) -> bool:
    if not groups and not names:
        return True
    return label.group in (groups or ()) or label.name in (names or ())


def _tell(rows: Sequence[Row], seconds: float) -> None:
    for row in rows:
        if not (row.right_reason and row.right_move) or row.cascade_as_root:
            wanted = f"{row.expected_reason} {row.expected_move} {row.expected_ledger}"
            blamed = f" blamed {row.blamed}" if row.cascade_as_root else ""
            print(f"WRONG {row.name}: {row.reason} {row.move} {row.ledger}{blamed}, not {wanted}: {row.cause[:200]}")
    right = sum(row.right_reason for row in rows)
    print(f"{right} of {len(rows)} reasons are right; {seconds:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
