"""How a row is counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.corpus.expected import LABELS
from tests.faults.corpus.label import Label
from tests.faults.corpus.measured import Measured
from tests.faults.corpus.report import page
from tests.faults.corpus.row import NOTHING, Observed, Row, make_row, read_rows, write_rows

BY_NAME = {label.name: label for label in LABELS}
KILLED = BY_NAME["sigkill-one-rank"]
MEASURED = Measured(date="2026-01-31", machine="2 CPUs")


def row(label: Label = KILLED, **changes: object) -> Row:
    """A row that is right, but for the changes."""
    right = Observed(
        reason=label.reason.value,
        move=label.move.value,
        ledger=label.asked_ledger,
        blamed=label.blamed,
        root={"source": "rank 1 exit status", "authority": "EXIT_STATUS", "role": "INITIATING"},
    )
    return make_row(label, "run", replace(right, **changes), hurt=(), seconds=1.0)


def test_sixty_mechanisms_and_a_fifth_held_out():
    assert len(LABELS) >= 60
    assert len(BY_NAME) == len(LABELS)
    assert 0.1 < sum(label.held_out for label in LABELS) / len(LABELS) < 0.3


def test_what_is_expected_is_right():
    assert (row().right_reason, row().right_move, row().cascade_as_root) == (True, True, False)


@pytest.mark.parametrize(
    "changes",
    [
        {"blamed": 0},
        {"root": {"role": "CASCADE"}},
        {"reason": "NETWORK_FABRIC"},
        {"reason": "COLLECTIVE_TIMEOUT"},
    ],
)
def test_a_consequence_as_root_is_noticed(changes):
    assert row(**changes).cascade_as_root


def test_a_wrong_reason_is_still_due_the_move_of_that_reason():
    assert row(reason="USER_CODE_ERROR", move="STOP").right_move
    assert not row(reason="USER_CODE_ERROR", move="RETRY").right_move
    assert not row(reason=NOTHING, move=NOTHING).right_move


def test_the_right_move_from_the_wrong_budget_is_wrong():
    assert not row(ledger="ceiling").right_move


def test_rows_come_back_as_they_were_written(tmp_path):
    rows = [row(), row(BY_NAME["abort"])]
    write_rows(tmp_path / "rows", rows)
    assert read_rows(tmp_path / "rows") == sorted(rows, key=lambda one: one.name)


def test_the_page_tells_what_is_wrong_and_what_never_ran():
    said = page([row(reason="UNKNOWN", cause="a | b")], MEASURED)
    assert "| UNKNOWN_KILL | **UNKNOWN** | 1 |" in said
    assert "| sigkill-one-rank | UNKNOWN_KILL RETRY | UNKNOWN RETRY | a \\| b |" in said
    assert said.count("not run") == len(LABELS) - 1


def test_the_page_tells_a_rank_that_was_lost_from_one_that_never_started():
    lost = {"rank": 0, "pid": 41, "exit_code": None, "signal": None, "lost": True}
    sent = [{"pid": 40, "program": "raylet", "sent": "SIGKILL"}]
    with_node = replace(row(BY_NAME["raylet-sigkill"], ranks=[lost]), hurt=sent)
    said = page([with_node, row(BY_NAME["actor-sigkill"], ranks=[lost]), row(BY_NAME["manifest-damaged"])], MEASURED)
    assert "| SIGKILL to raylet (40) | rank 0 (41): lost with its node |" in said
    assert "| rank 0 (41): lost with its actor |" in said
    assert said.count("no rank started") == 1
