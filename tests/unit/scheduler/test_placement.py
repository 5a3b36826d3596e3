"""The queue: first come first served, whole gangs or nothing, never more than there is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from trackway_scheduler.domain.catalogue import Capacity
from trackway_scheduler.domain.gang_sizes import smaller_gangs
from trackway_scheduler.domain.placement import Cluster, Waiting, WaitToken, plan

from tests.unit.scheduler.builders import NOW, later

GIB = 1 << 30


def capacity(cpus: float, accelerators: int = 0, memory_bytes: int = 64 * GIB) -> Capacity:
    return Capacity(cpus=cpus, accelerators=accelerators, memory_bytes=memory_bytes)


def waiting(name: str, ranks: int, *, cpus: float = 1.0, accelerators: int = 0, age: float = 0, wait: float = 0):
    return Waiting(
        run_id=name,
        attempt=1,
        pool="local",
        ranks=ranks,
        per_rank=Capacity(cpus=cpus, accelerators=accelerators, memory_bytes=GIB),
        submitted_at=later(age),
        not_before=later(wait),
    )


def cluster(cpus: float, used: float = 0.0, accelerators: int = 0) -> Cluster:
    return Cluster(
        pool="local",
        agent_id="agent-1",
        total=capacity(cpus, accelerators),
        used=capacity(used, memory_bytes=0),
    )


def test_a_gang_that_fits_is_placed_whole():
    made = plan([waiting("a", 3)], [cluster(3)], NOW)
    (grant,) = made.grants
    assert [rank.rank for rank in grant.ranks] == [0, 1, 2]
    assert {rank.cpus for rank in grant.ranks} == {1.0}
    assert grant.agent_id == "agent-1"
    assert made.waits == ()


def test_a_gang_that_does_not_fit_now_is_not_placed_in_part():
    made = plan([waiting("a", 3)], [cluster(4, used=2)], NOW)
    assert made.grants == ()
    assert made.waits[0].token is WaitToken.CAPACITY
    assert "room for 2" in made.waits[0].message


def test_who_waits_for_capacity_is_not_overtaken():
    made = plan([waiting("big", 4), waiting("small", 1, age=1)], [cluster(4, used=1)], NOW)
    assert made.grants == ()
    assert [wait.token for wait in made.waits] == [WaitToken.CAPACITY, WaitToken.TURN]
    assert "behind run big" in made.waits[1].message


def test_a_run_in_backoff_lets_others_pass():
    made = plan([waiting("a", 2, wait=30), waiting("b", 2, age=1)], [cluster(2)], NOW)
    assert [grant.run_id for grant in made.grants] == ["b"]
    assert made.waits[0].token is WaitToken.BACKOFF


def test_a_gang_larger_than_the_pool_blocks_nobody():
    made = plan([waiting("huge", 9), waiting("b", 2, age=1)], [cluster(2)], NOW)
    assert [grant.run_id for grant in made.grants] == ["b"]
    assert made.waits[0].token is WaitToken.NO_MATCHING_FLAVOR


def test_a_pool_without_an_agent_places_nothing():
    made = plan([waiting("a", 1)], [], NOW)
    assert made.waits[0].token is WaitToken.AGENT


def test_a_smaller_gang_starts_once_the_whole_one_was_waited_for():
    run = replace(waiting("a", 4), smaller=(2, 1), smaller_after_s=30)
    waits = plan([run], [cluster(3)], later(29)).waits
    assert "from 12:00:30 UTC on 1 will do" in waits[0].message
    (grant,) = plan([run], [cluster(3)], later(30)).grants
    assert len(grant.ranks) == 2
    assert grant.shortfall == "4 ranks were not to be had within 30 s"
    assert len(plan([run], [cluster(4, used=3)], later(30)).grants[0].ranks) == 1
    whole = plan([run], [cluster(4)], later(99)).grants[0]
    assert (len(whole.ranks), whole.shortfall) == (4, "")


def test_a_smaller_gang_overtakes_nobody_in_front_of_it():
    run = replace(waiting("b", 4, age=1), smaller=(1,), smaller_after_s=0)
    made = plan([waiting("a", 3), run], [cluster(4, used=2)], later(60))
    assert made.grants == ()
    assert [wait.token for wait in made.waits] == [WaitToken.CAPACITY, WaitToken.TURN]


def test_a_gang_larger_than_the_pool_keeps_its_turn_once_a_smaller_one_will_do():
    run = replace(waiting("a", 8), smaller=(4, 2), smaller_after_s=30)
    made = plan([run, waiting("b", 1, age=1)], [cluster(4, used=3)], later(30))
    assert made.grants == ()
    assert [wait.token for wait in made.waits] == [WaitToken.CAPACITY, WaitToken.TURN]


def test_smaller_gangs_divide_the_whole_one():
    assert smaller_gangs(8, 2) == (4, 2)
    assert smaller_gangs(6, 1) == (3, 2, 1)
    assert smaller_gangs(8, 0) == ()


def test_accelerators_are_counted():
    made = plan([waiting("a", 2, accelerators=1)], [cluster(8, accelerators=1)], NOW)
    assert made.grants == ()
    assert plan([waiting("a", 2, accelerators=1)], [cluster(8, accelerators=2)], NOW).grants


def test_fractions_of_cpus_add_up():
    assert plan([waiting("a", 3, cpus=0.1)], [cluster(0.3)], NOW).grants


gangs = st.lists(
    st.builds(
        lambda least, **fields: Waiting(**fields, smaller=smaller_gangs(fields["ranks"], least)),
        least=st.integers(0, 4),
        smaller_after_s=st.integers(0, 4),
        run_id=st.uuids().map(str),
        attempt=st.integers(1, 5),
        pool=st.sampled_from(["p", "q", "nobody's"]),
        ranks=st.integers(1, 8),
        per_rank=st.builds(
            Capacity,
            cpus=st.sampled_from([0.1, 0.5, 1.0, 2.0]),
            accelerators=st.integers(0, 2),
            memory_bytes=st.integers(0, 4),
        ),
        submitted_at=st.integers(0, 20).map(lambda s: NOW - timedelta(seconds=s)),
        not_before=st.integers(-5, 5).map(lambda s: NOW + timedelta(seconds=s)),
    ),
    max_size=12,
)
clusters = st.builds(
    lambda p, q: [
        Cluster(pool="p", agent_id="a-p", total=p),
        Cluster(pool="q", agent_id="a-q", total=q, used=Capacity(cpus=0.5, accelerators=0, memory_bytes=1)),
    ],
    *[st.builds(Capacity, cpus=st.integers(0, 8), accelerators=st.integers(0, 8), memory_bytes=st.integers(0, 16))] * 2,
)


@given(gangs, clusters)
def test_gangs_are_whole_capacity_is_kept_and_nobody_is_lost(runs, pools):
    made = plan(runs, pools, NOW)
    by_run = {run.run_id: run for run in runs}
    for grant in made.grants:
        run = by_run[grant.run_id]
        assert [rank.rank for rank in grant.ranks] == list(range(len(grant.ranks)))
        assert len(grant.ranks) in {run.ranks, *run.smaller}
        assert bool(grant.shortfall) == (len(grant.ranks) < run.ranks)
        if grant.shortfall:
            assert (NOW - run.not_before).total_seconds() >= run.smaller_after_s
        assert run.not_before <= NOW
        assert grant.pool == run.pool
    for pool in pools:
        granted = [rank for grant in made.grants if grant.pool == pool.pool for rank in grant.ranks]
        free = pool.total.minus(pool.used)
        assert sum(rank.cpus for rank in granted) <= max(free.cpus, 0) + 1e-6
        assert sum(rank.accelerators for rank in granted) <= max(free.accelerators, 0)
        assert sum(rank.memory_bytes for rank in granted) <= max(free.memory_bytes, 0)
    assert len(made.grants) + len(made.waits) == len(by_run)


@given(gangs, clusters)
def test_an_older_run_that_could_run_alone_is_never_overtaken_in_its_pool(runs, pools):
    made = plan(runs, pools, NOW)
    blocked = {wait.run_id for wait in made.waits if wait.token is WaitToken.CAPACITY}
    by_run = {run.run_id: run for run in runs}
    for run_id in blocked:
        older = by_run[run_id]
        for grant in made.grants:
            younger = by_run[grant.run_id]
            if younger.pool == older.pool:
                assert (younger.submitted_at, younger.run_id) < (older.submitted_at, older.run_id)
