"""A tenth of the failure corpus, each from another group; `make faults` runs all of it.

Each has one rank, took under 5 s in the measured corpus, and waits for nothing but its own program and the decision.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.faults.corpus.expected import LABELS
from tests.faults.corpus.run import AT_ONCE, run_one
from tests.faults.corpus.verify import differs

TENTH = (
    "exception-group",
    "cublas-alloc-failed",
    "null-pointer",
    "actor-sigkill",
    "guard-raises",
    "undecodable-text",
    "unknown-argument",
    "object-store-503",
    "device-ecc-error",
    "cancelled-at-start",
)


def test_each_is_of_another_group_and_none_is_held_out():
    chosen = [label for label in LABELS if label.name in TENTH]
    assert len({label.group for label in chosen}) == len(TENTH)
    assert [label.name for label in chosen if label.held_out or label.ranks != 1] == []


@pytest.fixture(scope="module")
def played(stack, numbers, tmp_path_factory):
    """Every row, and the folder with the logs; several faults at once, as the corpus is run."""
    results = tmp_path_factory.mktemp("corpus")
    chosen = [label for label in LABELS if label.name in TENTH]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        rows = list(threads.map(lambda label: run_one(stack, label, results), chosen))
    return {row.name: row for row in rows}, results


@pytest.mark.parametrize("name", TENTH)
def test_a_fault_gets_its_reason_and_its_next_move(played, name):
    rows, results = played
    row = rows[name]
    assert (row.reason, row.move, row.ledger) == (row.expected_reason, row.expected_move, row.expected_ledger), row
    assert not row.cascade_as_root
    assert differs(results, row) == []
