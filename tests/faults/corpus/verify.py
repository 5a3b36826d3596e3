"""Computes rows and page again from the kept logs, and judges every attempt again: `make faults-verify`.

Starts nothing. What the log says must be what the rows say, the page what the rows say, and a classifier of the
same version must give the same reason for the same observations; one of another version says where it differs.
`--write` first writes rows and page anew from the logs, after a change of what they show.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from trackway_common.codec import decode_observations
from trackway_common.commit import Commit
from trackway_common.events import AttemptEnded
from trackway_common.ids import attempt_stream
from trackway_common.log_copy.reader import LogCopy
from trackway_trainer_agent.domain.classify import VERSION, Classification
from trackway_trainer_agent.domain.reclassify import reclassify

from tests.faults.corpus.expected import LABELS
from tests.faults.corpus.label import Label
from tests.faults.corpus.logs import kept_log
from tests.faults.corpus.measured import read_measured
from tests.faults.corpus.observed import observed
from tests.faults.corpus.report import page
from tests.faults.corpus.results import PAGE, RESULTS, log_file, rows_file
from tests.faults.corpus.row import Observed, Row, make_row, read_rows, write_rows

RIGHT_NOW = "right now"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write rows and page anew from the kept logs first")
    if parser.parse_args().write:
        _write()
    rows = read_rows(rows_file(RESULTS))
    differences = [*_unlabelled(rows), *(said for row in rows for said in differs(RESULTS, row)), *_page(rows)]
    for said in differences:
        print(said)
    print(f"{len(rows)} faults verified against their logs: {len(differences)} differences")
    return 1 if differences else 0


def differs(results: Path, row: Row) -> list[str]:
    """What the kept log says otherwise than the row."""
    label = next((label for label in LABELS if label.name == row.name), None)
    if label is None:
        return []
    if not row.run_id:
        return []
    if not log_file(results, row.name).exists():
        return [f"{row.name}: its log is not kept; run `make faults`"]
    with kept_log(results, row.name) as copy:
        commits = copy.commits(row.run_id)
        seen = observed(row.run_id, row.attempt, commits)
        again = _again(label, row, seen)
        found = [] if again == row else [f"{row.name}: the log says {again}, the row says {row}"]
        return [*found, *_judged(row, copy, receipt_of(row, commits))]


def _again(label: Label, row: Row, seen: Observed) -> Row:
    """The row as its log gives it; what the harness did and how long it took is in no log."""
    return make_row(label, row.run_id, seen, hurt=row.hurt, seconds=row.seconds)


def _write() -> None:
    measured = read_measured(RESULTS)
    if measured is None:
        raise SystemExit(f"{RESULTS.name}/measured.json is not there; run `make faults`")
    rows = [_rewritten(row) for row in read_rows(rows_file(RESULTS))]
    write_rows(rows_file(RESULTS), rows)
    PAGE.write_text(page(read_rows(rows_file(RESULTS)), measured), encoding="utf-8")


def _rewritten(row: Row) -> Row:
    label = next((label for label in LABELS if label.name == row.name), None)
    if label is None or not log_file(RESULTS, row.name).exists():
        return row
    with kept_log(RESULTS, row.name) as copy:
        return _again(label, row, observed(row.run_id, row.attempt, copy.commits(row.run_id)))


def receipt_of(row: Row, commits: Iterable[Commit]) -> AttemptEnded | None:
    """The end of the attempt that the row is about."""
    stream = attempt_stream(row.run_id, row.attempt)
    facts = [fact for commit in commits if commit.stream == stream for fact in commit.facts]
    return next((fact for fact in facts if isinstance(fact, AttemptEnded)), None)


def _judged(row: Row, copy: LogCopy, receipt: AttemptEnded | None) -> list[str]:
    if receipt is None:
        return []
    stored = copy.blob(receipt.observations_digest) if receipt.observations_digest else None
    verdict = reclassify(receipt, decode_observations(stored) if stored is not None else None)
    if (verdict.reason.value, verdict.blamed_rank) == (row.reason, row.blamed):
        return []
    return [_other(row, replace(row, reason=verdict.reason.value, blamed=verdict.blamed_rank), verdict)]


def _other(row: Row, judged: Row, verdict: Classification) -> str:
    better = RIGHT_NOW if judged.right_reason and not judged.cascade_as_root else "wrong"
    said = f"classifier {row.classifier_version} said {row.reason}, {VERSION} says {verdict.reason}"
    return f"{row.name}: {said} ({better}); run `make faults` again"


def _unlabelled(rows: list[Row]) -> list[str]:
    """A label without a row is no difference: the page says that it did not run."""
    known = {label.name for label in LABELS}
    return [f"{row.name}: a row without a label" for row in rows if row.name not in known]


def _page(rows: list[Row]) -> list[str]:
    measured = read_measured(RESULTS)
    if measured is None or not PAGE.exists():
        return [f"{PAGE.name} was never written; run `make faults`"]
    if PAGE.read_text(encoding="utf-8") != page(rows, measured):
        return [f"{PAGE.name} is not what the rows say; run `make faults`"]
    return []


if __name__ == "__main__":
    sys.exit(main())
