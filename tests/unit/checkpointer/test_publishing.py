"""The commit log as outbox: every slot once, in order, whoever dies."""

from __future__ import annotations

import asyncio

import pytest
from trackway_checkpointer.shell import caretaker
from trackway_checkpointer.shell.publisher import BATCH, Publisher
from trackway_common.checkpoint.entries import Fence, Hold
from trackway_common.checkpoint.layout import log_key
from trackway_common.errors import CorruptLog, Unavailable
from trackway_common.event_log import InMemoryEventLog, UncertainAppend
from trackway_common.ids import root_key
from trackway_common.partitioner import partition_of
from trackway_common.testing.run_facts import TRACEPARENT
from trackway_common.topics import CHECKPOINTS, FACT_PARTITIONS


def saved(world, steps=3, run_id="run-1"):
    run = world.run(run_id, world_size=1)
    run.log().append(Fence(epoch=1))
    for step in range(steps):
        run.save(step)
    return run


async def test_what_is_in_the_store_is_published_at_the_start(world, start):
    runs = [saved(world, run_id=f"run-{number}") for number in range(3)]
    async with start():
        for run in runs:
            assert world.names(run.run_id) == ["FenceRaised"] + ["CheckpointCommitted"] * 3
    assert len(world.records()) == 12


async def test_a_second_start_publishes_nothing_again(world, start):
    saved(world)
    async with start("a"):
        pass
    async with start("b"):
        pass
    assert len(world.records()) == 4


async def test_only_what_is_missing_is_published(world, start):
    run = saved(world)
    async with start("a"):
        pass
    run.save(10)
    async with start("b"):
        assert [commit.first_seq for commit in world.records()] == [1, 2, 3, 4, 5]


async def test_a_long_log_is_published_in_order(world, start):
    run = saved(world, 1)
    for number in range(2 * BATCH):
        run.log().append(Hold(commit_slot=2, consumer=f"c{number}", reason="r"))
    async with start():
        assert [commit.first_seq for commit in world.accepted()] == list(range(1, 2 * BATCH + 3))


async def test_facts_of_a_run_lie_beside_its_other_facts(world, start):
    saved(world)
    async with start():
        pass
    assert {record.partition for record in world.log.records(CHECKPOINTS)} == {
        partition_of(root_key("runs/run-1"), FACT_PARTITIONS)
    }


async def test_entries_that_nobody_announced_are_found_by_the_sweep(world, start):
    run = saved(world)
    async with start():
        run.log("evaluator").append(Hold(commit_slot=2, consumer="evaluator", reason="r"))
        await world.until_published(run)
    assert world.names()[-1] == "CheckpointHeld"


async def test_what_nobody_asked_for_stays_in_the_runs_trace(world, start):
    run = saved(world)
    async with start("a") as checkpointer:
        run.save(10)
        assert await checkpointer.publisher.publish(run.run_id, TRACEPARENT) == 1
        run.save(11)
        await world.until_published(run)
    run.save(12)
    async with start("b"):
        pass
    assert [commit.traceparent for commit in world.records()] == [""] * 4 + [TRACEPARENT] * 3


async def test_two_checkpointers_publish_one_stream(world, start, wait_until):
    run = saved(world, 1)
    async with start("a"), start("b"):
        for step in range(10, 30):
            run.save(step)
            await asyncio.sleep(0)
        await world.until_published(run)
    assert [commit.first_seq for commit in world.accepted()] == list(range(1, 23))


class FlakyLog(InMemoryEventLog):
    """Every second append to the facts fails; every fourth is written although it failed."""

    def __init__(self):
        super().__init__()
        self.appends = 0

    async def append(self, topic, partition, key, value, headers):
        if topic != CHECKPOINTS:
            return await super().append(topic, partition, key, value, headers)
        self.appends += 1
        if self.appends % 4 == 0:
            await super().append(topic, partition, key, value, headers)
            raise UncertainAppend("no acknowledgement")
        if self.appends % 2 == 0:
            raise Unavailable("no broker")
        return await super().append(topic, partition, key, value, headers)


async def test_uncertain_sends_are_repeated_and_count_once(world, start, monkeypatch):
    monkeypatch.setattr(caretaker, "AWAY_S", 0.01)
    world.log = FlakyLog()
    run = saved(world, 6)
    async with start():
        await world.until_published(run)
    assert [commit.first_seq for commit in world.accepted()] == list(range(1, 8))
    assert len(world.records()) >= 7


async def test_a_store_that_lost_published_entries_is_not_gone_on_with(world, start):
    run = saved(world)
    async with start():
        pass
    for slot in (3, 4):
        world.store.delete(log_key(run.run_id, slot))
    publisher = Publisher(world.log, world.store)
    following = asyncio.ensure_future(publisher.follow())
    await publisher.caught_up.wait()
    with pytest.raises(CorruptLog, match="slot 4 of its commit log was published and is not in the store"):
        await publisher.publish(run.run_id)
    following.cancel()


async def test_one_damaged_run_does_not_hold_up_the_others(world, start):
    saved(world, run_id="run-1")
    bad = saved(world, run_id="run-0")
    world.store.put(log_key(bad.run_id, 2), b"damaged")
    async with start():
        assert world.names("run-1") == ["FenceRaised"] + ["CheckpointCommitted"] * 3
        assert world.names("run-0") == []
