"""What run facts ask of an agent, and how ranks are numbered."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st
from trackway_common.events import AttemptPlaced, AttemptWrittenOff, CancelRequested, RunCancelled, TerminationReason
from trackway_trainer_agent.domain.orders import evolve, initial
from trackway_trainer_agent.domain.topology import number_ranks

AT = datetime(2026, 1, 1, tzinfo=UTC)
PLACED = AttemptPlaced(attempt=1, epoch=1, agent_id="a", placed_at=AT)


def orders(*facts):
    return reduce(evolve, facts, initial("r"))


def test_placed_attempts_are_known_and_not_stopped() -> None:
    known = orders(PLACED)
    assert known.placed[1] == PLACED
    assert known.stop_order(1) is None


def test_a_cancel_names_who_asked_and_stays_when_the_run_is_cancelled() -> None:
    known = orders(
        PLACED, CancelRequested(reason="wrong data", actor="ada", requested_at=AT), RunCancelled(ended_at=AT)
    )
    order = known.stop_order(1)
    assert order is not None
    assert order.reason is TerminationReason.CANCELLED_BY_USER
    assert order.why == "the run was cancelled by ada: wrong data"


def test_a_written_off_attempt_is_stopped_and_its_successor_not() -> None:
    written_off = AttemptWrittenOff(attempt=1, reason=TerminationReason.AGENT_LOST, written_off_at=AT)
    known = orders(PLACED, written_off)
    assert known.stop_order(1).reason is TerminationReason.AGENT_LOST
    assert known.stop_order(2) is None


def test_ranks_are_numbered_by_node() -> None:
    numbers = number_ranks(["b", "a", "b", "a", "c"])
    assert [(n.local_rank, n.local_world_size, n.group_rank) for n in numbers] == [
        (0, 2, 0),
        (0, 2, 1),
        (1, 2, 0),
        (1, 2, 1),
        (0, 1, 2),
    ]
    assert numbers[2].neighbours == (0, 2)
    assert {n.group_world_size for n in numbers} == {3}


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=30))
def test_numbers_are_a_bijection(nodes) -> None:
    numbers = number_ranks(nodes)
    assert len({(n.group_rank, n.local_rank) for n in numbers}) == len(nodes)
    assert sum(n.local_world_size for n in numbers if n.local_rank == 0) == len(nodes)
