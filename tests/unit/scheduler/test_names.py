"""Names as people write them."""

from __future__ import annotations

import pytest
from trackway_common.errors import CommandRejected, NotFound
from trackway_scheduler.domain.names import find_run, project_of, run_name

RUNS = ("01930000-0000-7000-8000-00000000000a", "01930000-0000-7000-8000-00000000000b", "01944444-0000-7000-8000-0c")


@pytest.mark.parametrize("name", [RUNS[0], RUNS[0].upper(), run_name("demo", RUNS[0]), f"projects/-/runs/{RUNS[0]}"])
def test_a_run_is_found_by_id_and_resource_name(name):
    assert find_run(name, RUNS) == RUNS[0]


def test_a_run_is_found_by_a_unique_prefix():
    assert find_run("01944444", RUNS) == RUNS[2]


def test_an_ambiguous_prefix_lists_what_it_could_mean():
    with pytest.raises(CommandRejected, match="means 2 runs"):
        find_run("01930000", RUNS)


@pytest.mark.parametrize(("name", "error"), [("0193fff", NotFound), ("019", CommandRejected), ("", CommandRejected)])
def test_unknown_and_too_short_names(name, error):
    with pytest.raises(error):
        find_run(name, RUNS)


def test_parents_of_listings():
    assert project_of("projects/demo", "runs") == "demo"
    assert project_of("projects/-", "runs") is None
    assert project_of("", "runs") is None
    with pytest.raises(CommandRejected):
        project_of("demo", "runs")
