"""The committed page is what the kept logs say, and the classifier of today judges no kept attempt worse."""

from __future__ import annotations

import pytest

from tests.faults.corpus.measured import read_measured
from tests.faults.corpus.report import page
from tests.faults.corpus.results import PAGE, RESULTS, rows_file
from tests.faults.corpus.row import Row, read_rows
from tests.faults.corpus.verify import RIGHT_NOW, differs

RIGHT_REASONS = 0.95
"""The bar."""


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return read_rows(rows_file(RESULTS))


def test_what_was_right_still_is(rows):
    said = [line for row in rows for line in differs(RESULTS, row)]
    assert [line for line in said if RIGHT_NOW not in line] == []


def test_the_page_is_what_the_rows_say(rows):
    measured = read_measured(RESULTS)
    assert measured is not None
    assert PAGE.read_text(encoding="utf-8") == page(rows, measured)


def test_the_bar_is_met(rows):
    assert len(rows) >= 60
    assert sum(row.right_reason for row in rows) >= RIGHT_REASONS * len(rows)
    assert [row.name for row in rows if row.cascade_as_root] == []
    assert [row.name for row in rows if not row.right_move] == []
