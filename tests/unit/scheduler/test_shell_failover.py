"""Leaders, standbys, restarts, silent agents: what must survive the death of any of them."""

from __future__ import annotations

import pytest
from trackway_common.acceptance import Acceptance, Accepted
from trackway_common.codec import decode_commit
from trackway_common.errors import CommandRejected, Unavailable
from trackway_common.events import TerminationReason as Reason
from trackway_common.ids import uuid7
from trackway_common.topics import RUNS
from trackway_proto.v1 import run_service_pb2 as pb

from tests.unit.scheduler.stage import SPEC, Caller, Stage, World, other_agent


@pytest.fixture
async def world():
    made = World()
    async with made.running():
        yield made


def accepted(world: World, run_id: str) -> list[str]:
    """Facts of a run that count, by the acceptance rule alone."""
    rule, names = Acceptance(RUNS), []
    for record in world.log.records(RUNS):
        commit = decode_commit(record.value)
        verdict = rule.judge(record.partition, commit)
        if isinstance(verdict, Accepted) and commit.stream == f"runs/{run_id}":
            names += [type(fact).__name__ for fact in commit.facts]
    return names


async def test_a_standby_reads_but_does_not_write_and_names_the_active_one(world):
    async with Stage(world, "one").up() as one:
        run = await one.submit()
        async with Stage(world, "two").up(wait_active=False) as two:
            await two.until(lambda: two.opening._parts is not None and two.state(run.run_id))
            await two.phase(run.run_id, "RUNNING")
            await two.until(lambda: two.opening.parts.fleet.other_scheduler())
            with pytest.raises(Unavailable, match="one:1"):
                await two.submit()
            assert not two.scheduler.is_active
            assert two.active_changes == []


async def test_a_standby_takes_over_after_the_active_one_died_and_finishes_its_work(world):
    async with Stage(world, "one").up() as one, Stage(world, "two").up(wait_active=False) as two:
        run = await one.submit()
        await one.phase(run.run_id, "RUNNING")
        await two.until(lambda: two.opening._parts is not None)
        await one.kill()
        await world.end_attempt(run.run_id, 1, Reason.COMPLETED)
        await two.until(lambda: two.scheduler.is_active)
        await two.phase(run.run_id, "SUCCEEDED")
        assert two.active_changes == [True]
    assert accepted(world, run.run_id) == [
        "RunSubmitted", "RunQueued", "AttemptPlaced", "RetryDecided", "RunSucceeded",
    ]  # fmt: skip


async def test_a_fenced_scheduler_stops_serving_and_its_late_facts_do_not_count(world):
    async with Stage(world, "one").up() as one, Stage(world, "two").up(wait_active=False) as two:
        run = await one.submit()
        await two.until(lambda: two.opening._parts is not None)
        await two.scheduler._leadership._claim(tuple(f"partitions/{p}" for p in range(12)))
        await one.until(lambda: one.active_changes == [True, False])
        fenced_at = world.clock.monotonic()
        with pytest.raises(Unavailable, match="stands by"):
            await one.submit()
        # Nobody beats as active now, so one of them claims everything again and goes on.
        await one.until(lambda: one.scheduler.is_active or two.scheduler.is_active)
        assert world.clock.monotonic() - fenced_at >= 1
        await one.phase(run.run_id, "RUNNING")


async def test_two_that_start_together_agree_on_one(world):
    async with Stage(world, "one").up(wait_active=False) as one, Stage(world, "two").up(wait_active=False) as two:
        await one.until(lambda: one.scheduler.is_active or two.scheduler.is_active)
        settled_at = world.clock.monotonic() + 10
        await one.until(lambda: world.clock.monotonic() >= settled_at)
        assert one.scheduler.is_active is not two.scheduler.is_active
        active = one if one.scheduler.is_active else two
        await active.until(lambda: "local" in active.opening.parts.records.pools())
        await active.submit()


@pytest.mark.parametrize("moment", ["before the end is seen", "after it is decided"])
async def test_a_restart_converges_and_reacts_once(world, moment):
    async with Stage(world, "one").up() as one:
        run = await one.submit(SPEC + "retry: {process_crash: {max: 2, backoff_s: 0.2}}\n")
        await one.phase(run.run_id, "RUNNING")
        if moment == "before the end is seen":
            await one.kill()
        await world.end_attempt(run.run_id, 1, Reason.PROCESS_CRASH)
        if moment == "after it is decided":
            await one.until(lambda: one.state(run.run_id).decisions)
            await one.kill()
    async with Stage(world, "one").up() as again:
        await again.until(lambda: again.state(run.run_id).attempt == 2)
        await again.phase(run.run_id, "RUNNING")
    facts = accepted(world, run.run_id)
    assert facts == ["RunSubmitted", "RunQueued", "AttemptPlaced", "RetryDecided", "RunQueued", "AttemptPlaced"]


async def test_a_watch_cursor_outlives_the_scheduler(world):
    async with Stage(world, "one").up() as one:
        run = await one.submit()
        await one.phase(run.run_id, "RUNNING")
        stream = one.runs.WatchRun(pb.WatchRunRequest(name=run.run_id), Caller())
        first = [await anext(stream) for _ in range(2)]
        await stream.aclose()
    await world.end_attempt(run.run_id, 1, Reason.COMPLETED)
    async with Stage(world, "two").up() as two:
        request = pb.WatchRunRequest(name=run.run_id, cursor=first[-1].cursor)
        rest = [message async for message in two.runs.WatchRun(request, Caller())]
    assert [message.fact for message in first] == ["RunSubmitted", "RunQueued"]
    assert [message.fact for message in rest] == ["AttemptPlaced", "AttemptEnded", "RetryDecided", "RunSucceeded"]


async def test_submission_survives_a_restart_idempotently(world):
    run_id = uuid7()
    async with Stage(world, "one").up() as one:
        await one.submit(run_id=run_id)
    async with Stage(world, "two").up() as two:
        assert (await two.submit(run_id=run_id)).run_id == run_id
        with pytest.raises(CommandRejected, match="used before"):
            await two.submit(SPEC + "seed: 3\n", run_id)
    assert accepted(world, run_id).count("RunSubmitted") == 1


async def test_a_silent_agent_is_probed_and_trusted_while_it_answers(world):
    async with Stage(world).up() as stage:
        run = await stage.submit()
        await stage.phase(run.run_id, "RUNNING")
        world.reachable = True
        world.agent_beats = False
        await stage.until(lambda: stage.opening.parts.fleet.agent_silence_s("agent-1") > 100)
        assert stage.probed
        assert stage.state(run.run_id).attempt == 1
        assert "AttemptWrittenOff" not in accepted(world, run.run_id)


async def test_a_lost_agents_attempt_is_written_off_with_evidence_and_placed_on_another(world):
    async with Stage(world).up() as stage:
        run = await stage.submit()
        await stage.phase(run.run_id, "RUNNING")
        other_agent(world, agent_id="agent-2", endpoint="127.0.0.1:10")
        await stage.until(lambda: stage.state(run.run_id).attempt == 2)
        facts = accepted(world, run.run_id)
        assert facts[2:7] == ["AttemptPlaced", "AttemptWrittenOff", "RetryDecided", "RunQueued", "AttemptPlaced"]
        state = stage.state(run.run_id)
        assert state.placed.agent_id == "agent-2"
        assert state.decisions[0].reason is Reason.AGENT_LOST
        silence = stage.opening.parts.fleet.agent_silence_s("agent-1")
        assert silence >= 60


async def test_an_agent_that_comes_back_in_time_keeps_its_attempt(world):
    async with Stage(world).up() as stage:
        run = await stage.submit()
        await stage.phase(run.run_id, "RUNNING")
        world.agent_beats = False
        await stage.until(lambda: stage.opening.parts.fleet.agent_silence_s("agent-1") > 40)
        world.agent_beats = True
        await stage.until(lambda: stage.opening.parts.fleet.agent_silence_s("agent-1") < 5)
        assert accepted(world, run.run_id)[-1] == "AttemptPlaced"


async def test_a_pool_that_changes_is_observed_again_and_only_then(world):
    async with Stage(world).up() as stage:
        before = stage.opening.parts.records.pools()["local"]
        other_agent(world, cpus=8.0)
        await stage.until(lambda: stage.opening.parts.records.pools()["local"].cpus == 8.0)
        assert before.offers[0].max_ranks == 4
    pools = [
        commit for record in world.log.records(RUNS)
        if (commit := decode_commit(record.value)).stream == "pools/local"
    ]  # fmt: skip
    assert len(pools) == 2


async def test_a_cluster_that_is_away_changes_no_pool_and_its_runs_wait(world):
    async with Stage(world).up() as stage:
        other_agent(world, cpus=0.0)
        await stage.until(lambda: stage.opening.parts.fleet.agent("agent-1").heartbeat.cpus == 0.0)
        run = await stage.submit()
        await stage.until(lambda: run.run_id in stage.opening.parts.board.waits)
        assert (await stage.phase(run.run_id, "QUEUED")).reason == "NoMatchingFlavor"
        assert stage.opening.parts.records.pools()["local"].cpus == 4.0
        other_agent(world, cpus=4.0)
        await stage.phase(run.run_id, "RUNNING")
