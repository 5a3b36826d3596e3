"""Commands from the log, and retention."""

from __future__ import annotations

import asyncio

import pytest
from trackway_checkpointer.shell.caretaker import Pace
from trackway_common.checkpoint.entries import Fence, Hold, Release
from trackway_common.checkpoint.layout import CheckpointName, receipt_key
from trackway_common.checkpoint.resume import raise_fence
from trackway_common.errors import Unavailable
from trackway_common.event_log import InMemoryEventLog
from trackway_common.events import CheckpointCommitted, CheckpointSuperseded, SyncCommitLog
from trackway_common.object_store import InMemoryObjectStore
from trackway_common.topics import COMMANDS


def name_of(step, epoch=1, nonce="abcd"):
    return CheckpointName(step=step, epoch=epoch, nonce=nonce)


@pytest.fixture
def run(world):
    made = world.run()
    raise_fence(made.log("agent"), 1)
    return made


async def test_a_command_commits_and_publishes(world, run, start, make_command):
    async with start():
        run.write(name_of(10))
        await world.send(make_command(run, name_of(10)))
        await until_slot(run, 2)
        await world.until_published(run)
    [fence, committed] = world.accepted()
    fact = committed.facts[0]
    assert isinstance(fact, CheckpointCommitted)
    assert (fact.checkpoint.step, fact.checkpoint.epoch, fact.checkpoint.slot) == (10, 1, 2)
    assert fact.samples_consumed == 320
    assert fence.first_seq == 1


async def until_slot(run, slot):
    async with asyncio.timeout(10):
        while run.log().refresh().slot < slot:
            await asyncio.sleep(0.005)


async def test_a_command_from_before_the_start_is_carried_out(world, run, start, make_command):
    run.write(name_of(10))
    await world.send(make_command(run, name_of(10)))
    async with start():
        await until_slot(run, 2)
        await world.until_published(run)
    assert world.names() == ["FenceRaised", "CheckpointCommitted"]


async def test_a_command_that_comes_again_changes_nothing(world, run, start, make_command):
    run.write(name_of(10))
    async with start("a"), start("b"):
        for _ in range(3):
            await world.send(make_command(run, name_of(10)))
        await until_slot(run, 2)
        await world.send(SyncCommitLog(run_id=run.run_id))
        await world.until_published(run)
    assert world.names() == ["FenceRaised", "CheckpointCommitted"]


async def test_a_runs_commands_are_carried_out_in_their_order(world, run, start, make_command):
    steps = list(range(1, 15))
    for step in steps:
        run.write(name_of(step))
        await world.send(make_command(run, name_of(step), keep_last=100))
    async with start():
        await until_slot(run, len(steps) + 1)
    assert [commit.commit.step for commit in run.log().refresh().commits.values()] == steps


async def test_an_incomplete_checkpoint_is_refused_and_the_next_one_committed(world, run, start, make_command, caplog):
    run.write(name_of(10))
    world.store.delete(receipt_key(run.run_id, name_of(10), 1))
    run.write(name_of(20))
    async with start():
        await world.send(make_command(run, name_of(10)))
        await world.send(make_command(run, name_of(20), world_size=3))
        await world.send(make_command(run, name_of(20)))
        await until_slot(run, 2)
        await world.until_published(run)
    assert [commit.commit.step for commit in run.log().refresh().commits.values()] == [20]
    refusals = [record.error for record in caplog.records if record.message == "command refused"]
    assert len(refusals) == 2
    assert "no receipt of ranks [1]" in refusals[0]


async def test_a_fenced_attempt_commits_nothing(world, run, start, make_command, caplog):
    run.write(name_of(10))
    raise_fence(run.log("agent"), 2)
    async with start():
        await world.send(make_command(run, name_of(10)))
        await world.send(SyncCommitLog(run_id=run.run_id))
        await world.until_published(run)
        await asyncio.sleep(0.05)
    assert world.names() == ["FenceRaised", "FenceRaised"]
    assert any("epoch 2 owns" in record.error for record in caplog.records if record.message == "command refused")


@pytest.mark.parametrize(
    "changes", [{"run_id": "../escape"}, {"run_id": ""}, {"nonce": "../../x"}, {"nonce": ""}, {"world_size": 0}]
)
async def test_a_senseless_command_is_refused_and_stops_nobody(world, run, start, make_command, changes):
    run.write(name_of(10))
    async with start():
        await world.send(make_command(run, name_of(10), **changes))
        await world.send(make_command(run, name_of(10)))
        await until_slot(run, 2)


async def test_poison_in_the_commands_topic_stops_nobody(world, run, start, make_command):
    run.write(name_of(10))
    async with start():
        await world.log.append(COMMANDS, 0, b"k", b"\xff\xff", ())
        await world.send(make_command(run, name_of(10)))
        await until_slot(run, 2)


async def test_retention_supersedes_and_deletes(world, run, start, make_command, wait_until):
    async with start():
        for step in range(1, 6):
            run.write(name_of(step))
            await world.send(make_command(run, name_of(step), keep_last=2))
        await wait_until(lambda: world.names().count("CheckpointDeleted") == 3)
        await world.until_published(run)
    assert [int(name[1:10]) for name in world.store.names("checkpoints/run-1/data")] == [4, 5]
    superseded = [
        fact for commit in world.accepted() for fact in commit.facts if isinstance(fact, CheckpointSuperseded)
    ]
    assert [(fact.step, fact.by_policy) for fact in superseded] == [(step, "keep_last=2") for step in (1, 2, 3)]


async def test_a_held_checkpoint_stays_until_it_is_released(world, run, start, make_command, wait_until):
    async with start():
        run.write(name_of(1))
        await world.send(make_command(run, name_of(1), keep_last=2))
        await until_slot(run, 2)
        run.log("evaluator").append(Hold(commit_slot=2, consumer="evaluator", reason="r"))
        for step in (2, 3, 4):
            run.write(name_of(step))
            await world.send(make_command(run, name_of(step), keep_last=2))
        await wait_until(lambda: world.names().count("CheckpointDeleted") == 1)
        assert [int(name[1:10]) for name in world.store.names("checkpoints/run-1/data")] == [1, 3, 4]
        run.log("evaluator").append(Release(commit_slot=2, consumer="evaluator"))
        await wait_until(lambda: world.names().count("CheckpointDeleted") == 2)


async def test_a_deletion_that_was_begun_is_ended_by_the_next_checkpointer(world, run, start, make_command, wait_until):
    slow = Pace(grace_ms=10**9, sweep_s=0.05)
    async with start("a", pace=slow):
        for step in range(1, 5):
            run.write(name_of(step))
            await world.send(make_command(run, name_of(step), keep_last=2))
        await wait_until(lambda: world.names().count("CheckpointTombstoned") == 2)
    assert world.names().count("CheckpointDeleted") == 0
    async with start("b"):
        await wait_until(lambda: world.names().count("CheckpointDeleted") == 2)


async def test_bytes_of_a_fenced_attempt_go(world, run, start, wait_until):
    run.write(name_of(10))
    async with start():
        raise_fence(run.log("agent"), 2)
        await world.send(SyncCommitLog(run_id=run.run_id))
        await wait_until(lambda: world.store.names("checkpoints/run-1/data") == [])


class AwayStore(InMemoryObjectStore):
    """A store that can be taken away."""

    away = False

    def get(self, key, *, limit_bytes=None):
        if self.away and "run-1" in key:
            raise Unavailable("stale file handle")
        return super().get(key, limit_bytes=limit_bytes)


async def test_a_store_that_is_away_is_waited_for_and_others_go_on(world, start, make_command, monkeypatch):
    from trackway_checkpointer.shell import command_desk

    monkeypatch.setattr(command_desk, "RETRY_S", 0.01)
    world.store = AwayStore()
    runs = [world.run("run-1"), world.run("run-2")]
    for run in runs:
        raise_fence(run.log(), 1)
        run.write(name_of(10))
    async with start():
        world.store.away = True
        for run in runs:
            await world.send(make_command(run, name_of(10)))
        await until_slot(runs[1], 2)
        world.store.away = False
        await until_slot(runs[0], 2)


async def test_work_goes_on_after_the_position_that_was_saved(world, run, start, make_command, monkeypatch, wait_until):
    from trackway_checkpointer.shell import command_desk

    monkeypatch.setattr(command_desk, "SAVE_EVERY_S", 0.01)
    async with start("a") as first:
        for step in (1, 2):
            run.write(name_of(step))
            await world.send(make_command(run, name_of(step)))
        await wait_until(lambda: first.position.load() == {0: 2})
    carried_out = []

    async def carry_out(command, traceparent):
        carried_out.append(command.step)

    second = start("b")
    second.desk._carry_out = carry_out
    await world.send(make_command(run, name_of(3)))
    async with second:
        await wait_until(lambda: carried_out == [3])


async def test_the_position_never_passes_unfinished_work(world, start, make_command, monkeypatch, wait_until):
    from trackway_checkpointer.shell import command_desk

    monkeypatch.setattr(command_desk, "SAVE_EVERY_S", 0.01)
    runs = [world.run("run-1"), world.run("run-2")]
    held = asyncio.Event()

    async def carry_out(command, traceparent):
        if command.run_id == "run-1":
            await held.wait()

    checkpointer = start()
    checkpointer.desk._carry_out = carry_out
    async with checkpointer:
        for run in (runs[1], runs[0], runs[1]):
            await world.send(make_command(run, name_of(1)))
        await wait_until(lambda: checkpointer.position.load() == {0: 1})
        held.set()
        await wait_until(lambda: checkpointer.position.load() == {0: 3})


@pytest.mark.parametrize("saved", [b"{}", b"", b"[]", b'{"0": 99}', b'{"0": "x"}', b'{"0": -5}', b"\xff", b'{"7": 1}'])
async def test_a_position_that_can_not_be_is_read_as_none(world, run, start, make_command, saved):
    world.store.put("checkpointer/commands.json", saved)
    run.write(name_of(10))
    await world.send(make_command(run, name_of(10)))
    async with start():
        await until_slot(run, 2)


async def test_kills_at_any_moment_lose_and_double_nothing(start, make_command, world):
    """Tasks are cancelled at every await in turn; the next checkpointer takes over, until all is done."""
    for moment in range(0, 120, 3):
        world.log, world.store = InMemoryEventLog(), InMemoryObjectStore()
        run = world.run(world_size=1)
        run.log().append(Fence(epoch=1))
        for step in range(1, 6):
            run.write(name_of(step))
            await world.send(make_command(run, name_of(step), keep_last=2, world_size=1))
        first = start("a")
        starting = asyncio.ensure_future(first.__aenter__())
        for _ in range(moment):
            await asyncio.sleep(0)
        starting.cancel()
        await first.__aexit__()
        async with start("b"):
            async with asyncio.timeout(10):
                while world.names().count("CheckpointDeleted") < 3:
                    await asyncio.sleep(0.002)
            await world.until_published(run)
        state = run.log().refresh()
        assert [commit.commit.step for commit in state.restorable] == [5, 4]
        assert world.names().count("CheckpointCommitted") == 5
