"""The agent, the log and the cluster go away while ranks train; training does not end for it."""

from __future__ import annotations

from collections import Counter

import pytest
from trackway_common import events as e
from trackway_common.acceptance import Acceptance, Accepted
from trackway_common.codec import decode_commit
from trackway_common.errors import Unavailable
from trackway_common.event_log import UncertainAppend
from trackway_common.events import TerminationReason as Reason
from trackway_common.testing.run_facts import RUN_ID
from trackway_common.topics import ATTEMPTS
from trackway_trainer_agent.domain.observations import SubstrateCause

from tests.unit.trainer_agent.reports import captured, first_step, line, metrics, persisted
from tests.unit.trainer_agent.world import World


def claims(world: World) -> list[int]:
    return [commit.term.claim for commit in world.commits() if commit.first_seq == 0]


async def test_a_restarted_agent_goes_on_where_the_ranks_are(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        world.rank(0).tell(first_step())
        world.rank(0).tell(line("before"))
        await world.fact(e.AttemptRunning)
        await world.until(lambda: any(batch.logs for batch in world.telemetry()))
    for rank in (0, 1):
        world.rank(rank).tell(captured())
        world.rank(rank).tell(persisted())
    world.rank(0).tell(line("while it was away"))
    async with world.agent():
        await world.until(lambda: world.requests(e.CommitCheckpoint))
        world.rank(0).tell(line("after"))
        for rank in (0, 1):
            world.rank(rank).exit(0)
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.COMPLETED
    assert len(world.gangs.made) == 1
    assert claims(world) == [1, 2]
    assert Counter(world.names()) == Counter(
        [
            "AttemptStarting",
            "ResumeTargetChosen",
            "AttemptStarted",
            "AttemptRunning",
            "CheckpointStarted",
            "AttemptEnded",
        ]
    )
    assert [spooled.line.text for spooled in world.spools.of(RUN_ID, 1).read()] == [
        "before",
        "while it was away",
        "after",
    ]


async def test_what_ended_while_the_agent_was_away_is_explained_by_what_the_actors_kept(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
    world.rank(1).exit(signal="SIGKILL")
    world.rank(0).exit(0)
    async with world.agent():
        ended = await world.fact(e.AttemptEnded)
        await world.until(lambda: not world.gangs.names)
    assert (ended.reason, ended.blamed_rank) == (Reason.UNKNOWN_KILL, 1)


@pytest.mark.parametrize(
    ("cause", "reason"),
    [(SubstrateCause.UNEXPLAINED, Reason.UNKNOWN_KILL), (SubstrateCause.NODE_DIED, Reason.NODE_LOST)],
)
async def test_actors_that_are_gone_after_a_restart(world: World, cause: SubstrateCause, reason: Reason) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
    for rank in (0, 1):
        world.rank(rank).die(cause, "gone")
    async with world.agent():
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is reason


async def test_an_attempt_without_a_gang_is_begun_anew_after_a_restart(world: World) -> None:
    world.gangs.reachable = False
    async with world.agent():
        await world.place()
        await world.fact(e.ResumeTargetChosen)
    world.gangs.reachable = True
    async with world.agent():
        await world.fact(e.AttemptStarted)
    assert world.names() == ["AttemptStarting", "ResumeTargetChosen", "AttemptStarted"]


async def test_a_capture_of_an_ended_attempt_is_finished_by_the_next_agent(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(captured())
        await world.fact(e.CheckpointStarted)
        for rank in (0, 1):
            world.rank(rank).exit(signal="SIGKILL", saving=True)
        await world.fact(e.AttemptEnded)
    for rank in (0, 1):
        world.rank(rank).tell(persisted())
    async with world.agent():
        request = (await world.until(lambda: world.requests(e.CommitCheckpoint)))[0]
    assert request.nonce == "abcd"


async def test_a_capture_that_went_with_its_actor_is_given_up_by_the_next_agent(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(captured())
        await world.fact(e.CheckpointStarted)
        for rank in (0, 1):
            world.rank(rank).exit(signal="SIGKILL", saving=True)
        await world.fact(e.AttemptEnded)
    world.gangs.restart()
    async with world.agent():
        abandoned = await world.fact(e.CheckpointAbandoned)
        await world.place(2, captures_in_flight=("abcd",))
        await world.fact(e.AttemptStarted, attempt=2)
    assert abandoned.nonce == "abcd"


async def test_an_agent_that_was_replaced_stops_writing_and_leaves_the_ranks_alone(world: World) -> None:
    async with world.agent() as zombie:
        await world.place()
        await world.fact(e.AttemptStarted)
        async with world.agent():
            await world.until(lambda: claims(world) == [1, 2])
            world.rank(0).tell(first_step())
            await world.fact(e.AttemptRunning)
            await world.until(lambda: not zombie.attempts)
            assert world.gangs.names
            for rank in (0, 1):
                world.rank(rank).exit(0)
            ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.COMPLETED
    assert world.names().count("AttemptRunning") <= 2
    assert claims(world) == [1, 2]


@pytest.mark.parametrize("error", [Unavailable, UncertainAppend])
async def test_while_the_log_is_away_nothing_is_lost_or_doubled(
    world: World, monkeypatch, error: type[Exception]
) -> None:
    append, down = world.log.append, [False]

    async def flaky(topic, partition, key, value, headers):
        if down[0]:
            if error is UncertainAppend and topic == ATTEMPTS:
                await append(topic, partition, key, value, headers)
            raise error("the broker is away")
        return await append(topic, partition, key, value, headers)

    monkeypatch.setattr(world.log, "append", flaky)
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        down[0] = True
        world.rank(0).tell(first_step())
        for step in range(1, 51):
            world.rank(0).tell(metrics(step, loss=1 / step))
        world.rank(0).tell(line("during the outage"))
        at = world.clock.monotonic()
        await world.until(lambda: world.clock.monotonic() > at + 10.0)
        assert world.gangs.names
        down[0] = False
        await world.until(lambda: sum(len(batch.steps) for batch in world.telemetry()) >= 50)
        for rank in (0, 1):
            world.rank(rank).exit(0)
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.COMPLETED
    accepted = [type(fact).__name__ for fact in accepted_facts(world)]
    assert accepted == ["AttemptStarting", "ResumeTargetChosen", "AttemptStarted", "AttemptRunning", "AttemptEnded"]
    assert {item.step for batch in world.telemetry() for item in batch.steps} == set(range(1, 51))


def accepted_facts(world: World) -> list[e.Fact]:
    """What a reader accepts of attempt 1."""
    acceptance, found = Acceptance(ATTEMPTS), []
    for record in world.log.records(ATTEMPTS):
        commit = decode_commit(record.value)
        if isinstance(acceptance.judge(record.partition, commit), Accepted):
            found += commit.facts
    return found


async def test_what_the_agent_cannot_judge_ends_the_attempt_not_the_agent(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        # Only the first of many mistakes that a record's reading may hold.
        world.rank(0).exit(1, stderr_tail=(7,))
        world.rank(1).exit(1)
        ended = await world.fact(e.AttemptEnded)
        await world.until(lambda: not world.gangs.names)
    assert ended.reason is Reason.PLATFORM_ERROR
    assert ended.ranks == ()
    assert [one.launch_problem is not None for one in ended.observations] == [True]
    assert "attempt judged without what was seen" in caplog.messages
