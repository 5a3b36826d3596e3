"""What the attempt after a failure does differently, as facts."""

from __future__ import annotations

import pytest
from trackway_common.events import AttemptPlaced, Change, NextMove, RetryDecided, RetryOverride, RunFailed, RunQueued
from trackway_common.events import TerminationReason as Reason
from trackway_scheduler.domain.commands import PlaceAttempt
from trackway_scheduler.domain.ladder import Room

from tests.unit.scheduler.builders import NOW, Given, ended, later, ranks, running
from tests.unit.scheduler.shapes import ROOM, tunable_spec, values


def place(attempt: int, count: int = 2, shortfall: str = "") -> PlaceAttempt:
    return PlaceAttempt(
        attempt=attempt, pool="local", agent_id="agent-1", ranks=ranks(count), captures_in_flight=(), at=later(9999),
        shortfall=shortfall,
    )  # fmt: skip


def after(given: Given, reason: Reason, attempt: int, node: str | None = None, room: Room = ROOM) -> Given:
    """The same run, one failure and one placement later."""
    failed = given.and_when(ended(reason, attempt, at=NOW, blamed_node=node, room=room))
    assert isinstance(failed.made[1], RunQueued), failed.made
    return failed.and_when(place(attempt + 1))


def started(spec=None) -> Given:
    return Given(*running(spec))


def test_out_of_memory_is_retried_with_a_recorded_change_on_both_facts():
    spec = tunable_spec({"batch": 64, "passes": 1}, "micro_batch", "accumulation")
    decided = started(spec).and_when(ended(Reason.DEVICE_OOM)).then_kinds(RetryDecided, RunQueued)
    fact = decided.made[0]
    assert (fact.move, fact.spent, fact.budget, fact.backoff_seconds) == (NextMove.RETRY, 1, 3, 0.0)
    assert "hyperparameters.batch 64 → 32, hyperparameters.passes 1 → 2" in fact.why
    placed = decided.and_when(place(2)).made[0]
    assert isinstance(placed, AttemptPlaced)
    assert placed.changes == fact.changes
    assert placed.shape == fact.shape
    assert values(placed.shape) == {"batch": 32, "passes": 2}
    assert placed.shape.config_digest != spec.config_digest


def test_the_budget_of_changes_is_spent_after_three():
    spec = tunable_spec({"batch": 64, "passes": 1}, "micro_batch", "accumulation")
    given = started(spec)
    for attempt in (1, 2, 3):
        given = after(given, Reason.DEVICE_OOM, attempt)
    assert values(given.run.shape) == {"batch": 8, "passes": 8}
    given.and_when(ended(Reason.DEVICE_OOM, 4)).then_kinds(RetryDecided, RunFailed)


def test_a_later_failure_of_another_kind_keeps_the_changed_shape():
    spec = tunable_spec({"batch": 64, "passes": 1}, "micro_batch", "accumulation")
    given = after(after(started(spec), Reason.DEVICE_OOM, 1), Reason.UNKNOWN_KILL, 2)
    placed = given.made[0]
    assert placed.changes == ()
    assert values(placed.shape) == {"batch": 32, "passes": 2}


@pytest.mark.parametrize("reason", [Reason.DATA_CORRUPT, Reason.DATA_SCHEMA_DRIFT])
def test_bad_data_is_never_retried_whatever_the_spec_says(reason):
    spec = tunable_spec({}, retry=(RetryOverride(reason=reason, max=-1),))
    given = started(spec).and_when(ended(reason)).then_kinds(RetryDecided, RunFailed)
    assert (given.made[0].budget, given.made[0].move) == (0, NextMove.STOP)


@pytest.mark.parametrize("reason", [Reason.NODE_LOST, Reason.DEVICE_HARDWARE, Reason.LAUNCH_FAILED])
def test_a_node_that_is_blamed_is_kept_away_from(reason):
    placed = after(started(), reason, 1, "node-a").made[0]
    assert placed.shape.excluded_nodes == ("node-a",)
    change = Change(field="excluded_nodes", before="", after="node-a", why=f"{reason} there on node node-a")
    assert placed.changes == (change,)


def test_a_crash_excludes_its_node_the_second_time_only():
    given = after(started(), Reason.PROCESS_CRASH, 1, "node-a")
    assert given.made[0].shape is None
    given = after(given, Reason.PROCESS_CRASH, 2, "node-a")
    assert given.made[0].shape.excluded_nodes == ("node-a",)


def test_crashes_on_two_nodes_exclude_none():
    given = after(after(started(), Reason.PROCESS_CRASH, 1, "node-a"), Reason.PROCESS_CRASH, 2, "node-b")
    assert given.made[0].shape is None


@pytest.mark.parametrize("reason", [Reason.LAUNCH_FAILED, Reason.NODE_LOST])
def test_the_only_node_of_a_pool_is_not_excluded(reason):
    given = after(started(), reason, 1, "node-a", Room(nodes=1))
    assert given.made[0].shape is None


@pytest.mark.parametrize("reason", [Reason.CAPACITY_TIMEOUT, Reason.LAUNCH_FAILED])
def test_without_capacity_the_oldest_exclusion_is_dropped_on_record(reason):
    given = after(after(started(), Reason.NODE_LOST, 1, "node-a"), Reason.NODE_LOST, 2, "node-b")
    assert given.run.shape.excluded_nodes == ("node-a", "node-b")
    failed = given.and_when(ended(reason, 3, room=ROOM)).then_kinds(RetryDecided, RunQueued)
    assert failed.made[0].changes[0].before == "node-a, node-b"
    assert failed.made[0].changes[0].after == "node-b"
    assert "no room for the gang without its nodes" in failed.made[0].changes[0].why
    if reason is Reason.CAPACITY_TIMEOUT:
        assert failed.made[0].backoff_seconds == 0.0


def test_a_smaller_gang_is_a_recorded_change_and_so_is_the_way_back():
    given = Given(*running()[:-1]).when(place(1, 1, "2 ranks were not to be had within 30 s"))
    (placed,) = given.made
    why = "2 ranks were not to be had within 30 s"
    assert placed.changes == (Change(field="topology.world_size", before="2", after="1", why=why),)
    assert placed.shape.world_size == 1
    again = after(given, Reason.UNKNOWN_KILL, 1).made[0]
    assert again.shape is None
    assert (again.changes[0].before, again.changes[0].after) == ("1", "2")
