"""Checkpoints of a live attempt: facts, commit requests, and what happens to a capture that outlives its trainer."""

from __future__ import annotations

from dataclasses import replace

from trackway_common import events as e
from trackway_common.checkpoint.entries import Commit, Fence
from trackway_common.testing.run_facts import RUN_ID, run_spec, sha
from trackway_trainer_agent.worker.records import CheckpointAbandoned, RankPhase

from tests.unit.trainer_agent.reports import captured, persisted
from tests.unit.trainer_agent.world import World


def commit(world: World, nonce: str = "abcd", step: int = 10, epoch: int = 1) -> None:
    """The checkpointer commits."""
    path = f"data/s{step:09d}-e{epoch:04d}-{nonce}"
    world.commit_log().append(Commit(epoch=epoch, nonce=nonce, step=step, path=path, manifest_digest=sha("9")))


def fences(world: World) -> list[int]:
    return [entry.body.epoch for entry in world.commit_log().entries() if isinstance(entry.body, Fence)]


async def test_captured_by_all_then_committed(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        world.rank(0).tell(captured(blocked_seconds=0.1))
        world.rank(1).tell(captured(blocked_seconds=0.3))
        started = await world.fact(e.CheckpointStarted)
        assert world.requests(e.CommitCheckpoint) == []
        for rank in (0, 1):
            world.rank(rank).tell(persisted())
        (request,) = await world.until(lambda: world.requests(e.CommitCheckpoint))
    assert (started.step, started.epoch, started.nonce, started.size_bytes) == (10, 1, "abcd", 200)
    assert started.blocked_seconds == 0.3
    spec = run_spec()
    assert request == e.CommitCheckpoint(
        run_id=RUN_ID,
        epoch=1,
        step=10,
        nonce="abcd",
        world_size=2,
        config_digest=spec.config_digest,
        dataset_digests=(sha("d"),),
        keep_last=3,
        parent=None,
        metrics=(e.MetricValue(name="loss", value=0.5),),
    )


async def test_the_commit_before_is_named_as_parent(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for nonce, step in (("aaaa", 10), ("bbbb", 20)):
            for rank in (0, 1):
                world.rank(rank).tell(captured(nonce, step))
                world.rank(rank).tell(persisted(nonce, step))
        await world.until(lambda: world.requests(e.CommitCheckpoint))
        commit(world, "aaaa")
        first, second = await world.until(
            lambda: world.requests(e.CommitCheckpoint)[1:] and world.requests(e.CommitCheckpoint)
        )
    assert (first.nonce, first.parent) == ("aaaa", None)
    assert (second.nonce, second.parent.nonce, second.parent.step) == ("bbbb", "aaaa", 10)


async def test_a_directory_of_one_rank_is_enough(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        world.rank(0).tell(persisted(parts=1))
        (request,) = await world.until(lambda: world.requests(e.CommitCheckpoint))
        assert request.world_size == 1
        assert "CheckpointStarted" in world.names()


async def test_the_receipt_names_a_folder_that_was_finished_just_before_the_end(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        world.rank(0).tell(captured(parts=1))
        world.rank(0).exit(0, saving=True)
        world.rank(1).exit(0)
        ended = await world.fact(e.AttemptEnded)
        assert ended.captures_in_flight == ("abcd",)
        world.rank(0).tell(persisted(parts=1))
        world.rank(0).phase = RankPhase.ENDED
        await world.until(lambda: world.requests(e.CommitCheckpoint))
        commit(world)
        await world.until(lambda: not world.gangs.names)
    assert "CheckpointAbandoned" not in world.names()


async def test_a_rank_that_dies_before_its_receipt_abandons_the_checkpoint(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(captured())
        world.rank(0).tell(persisted())
        world.rank(1).exit(signal="SIGKILL")
        abandoned = await world.fact(e.CheckpointAbandoned)
        ended = await world.fact(e.AttemptEnded)
    assert (abandoned.nonce, abandoned.epoch) == ("abcd", 1)
    assert "rank 1" in abandoned.why
    assert ended.captures_in_flight == ()
    assert world.requests(e.CommitCheckpoint) == []


async def test_a_failed_write_is_abandoned_and_training_goes_on(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(captured())
        world.rank(1).tell(CheckpointAbandoned(step=10, nonce="abcd", why="StorageFull: no room", at_ms=1))
        abandoned = await world.fact(e.CheckpointAbandoned)
        for rank in (0, 1):
            world.rank(rank).tell(captured("bbbb", 20))
            world.rank(rank).tell(persisted("bbbb", 20))
        (request,) = await world.until(lambda: world.requests(e.CommitCheckpoint))
    assert abandoned.why == "rank 1: StorageFull: no room"
    assert request.nonce == "bbbb"


async def test_a_capture_that_outlives_its_trainer_is_still_committed(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(captured())
        await world.fact(e.CheckpointStarted)
        world.rank(0).exit(signal="SIGKILL", saving=True)
        world.rank(1).exit(signal="SIGKILL", saving=True)
        ended = await world.fact(e.AttemptEnded)
        assert ended.captures_in_flight == ("abcd",)
        assert world.gangs.names
        for rank in (0, 1):
            world.rank(rank).tell(persisted())
            world.rank(rank).phase = RankPhase.ENDED
        await world.until(lambda: world.requests(e.CommitCheckpoint))
        assert world.gangs.names
        commit(world)
        await world.until(lambda: not world.gangs.names)
    assert "CheckpointAbandoned" not in world.names()


async def test_a_save_that_ends_soon_is_in_the_receipt_as_committed(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(captured())
            world.rank(rank).tell(persisted())
        await world.until(lambda: world.requests(e.CommitCheckpoint))
        commit(world)
        for rank in (0, 1):
            world.rank(rank).exit(0)
        ended = await world.fact(e.AttemptEnded)
    assert ended.captures_in_flight == ()
    assert (ended.last_committed.nonce, ended.last_committed.step) == ("abcd", 10)


async def test_what_the_checkpointer_never_commits_is_given_up(world: World) -> None:
    world.timing = replace(world.timing, commit_limit_s=6.0)
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(captured())
            world.rank(rank).tell(persisted())
            world.rank(rank).exit(0)
        ended = await world.fact(e.AttemptEnded)
        abandoned = await world.fact(e.CheckpointAbandoned)
        await world.until(lambda: not world.gangs.names)
    assert ended.captures_in_flight == ("abcd",)
    assert "did not commit" in abandoned.why
    assert (abandoned.abandoned_at - ended.ended_at).total_seconds() >= world.timing.commit_limit_s


async def test_what_the_checkpointer_passed_over_delays_nobody(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for nonce, step in (("aaaa", 10), ("bbbb", 20)):
            for rank in (0, 1):
                world.rank(rank).tell(captured(nonce, step))
                world.rank(rank).tell(persisted(nonce, step))
        await world.until(lambda: len(world.requests(e.CommitCheckpoint)) == 2)
        commit(world, "bbbb", 20)
        for rank in (0, 1):
            world.rank(rank).exit(0)
        ended = await world.fact(e.AttemptEnded)
        abandoned = await world.fact(e.CheckpointAbandoned)
    assert ended.captures_in_flight == ()
    assert abandoned.nonce == "aaaa"
    assert (abandoned.abandoned_at - ended.ended_at).total_seconds() < world.timing.commit_limit_s


async def test_the_next_fence_waits_for_the_captures_of_the_attempt_before(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(captured())
        await world.fact(e.CheckpointStarted)
        for rank in (0, 1):
            world.rank(rank).exit(signal="SIGKILL", saving=True)
        ended = await world.fact(e.AttemptEnded)
        await world.place(2, captures_in_flight=ended.captures_in_flight)
        await world.fact(e.AttemptStarting, attempt=2)
        before = world.clock.monotonic()
        await world.until(lambda: world.clock.monotonic() > before + 5.0)
        assert fences(world) == [1]
        for rank in (0, 1):
            world.rank(rank).tell(persisted())
            world.rank(rank).phase = RankPhase.ENDED
        await world.until(lambda: world.requests(e.CommitCheckpoint))
        commit(world)
        await world.fact(e.ResumeTargetChosen, attempt=2)
    entries = [type(entry.body).__name__ for entry in world.commit_log().entries()]
    assert entries[:3] == ["Fence", "Commit", "Fence"]
    assert fences(world) == [1, 2]


async def test_an_abandoned_capture_lets_the_next_fence_go_on(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(captured())
        await world.fact(e.CheckpointStarted)
        for rank in (0, 1):
            world.rank(rank).exit(signal="SIGKILL", saving=True)
        ended = await world.fact(e.AttemptEnded)
        await world.place(2, captures_in_flight=ended.captures_in_flight)
        world.rank(1).die()
        await world.fact(e.CheckpointAbandoned)
        await world.fact(e.AttemptStarted, attempt=2)
    assert fences(world) == [1, 2]


async def test_a_fence_waits_no_longer_than_its_deadline(world: World) -> None:
    world.timing = replace(world.timing, captures_deadline_s=12.0)
    async with world.agent():
        await world.place(captures_in_flight=("gone",))
        starting = await world.fact(e.AttemptStarting)
        chosen = await world.fact(e.ResumeTargetChosen)
    waited = (chosen.chosen_at - starting.starting_at).total_seconds()
    assert waited >= world.timing.captures_deadline_s
