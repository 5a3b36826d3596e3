"""An attempt from its placement to its receipt."""

from __future__ import annotations

import pytest
from trackway_common import events as e
from trackway_common.checkpoint.entries import Fence
from trackway_common.events import CausalRole
from trackway_common.events import TerminationReason as Reason
from trackway_common.testing.checkpoints import CheckpointedRun
from trackway_common.testing.run_facts import RUN_ID, TRACEPARENT, run_spec, sha
from trackway_trainer_agent.domain.observations import SubstrateCause
from trackway_trainer_agent.gangs import GangName
from trackway_trainer_agent.worker.records import LaunchFailed, RankPhase

from tests.unit.trainer_agent.reports import first_step, metrics, reset_by_peer
from tests.unit.trainer_agent.world import AGENT, World

GANG = GangName(run_id=RUN_ID, attempt=1)


async def test_from_placement_to_receipt(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(first_step())
        await world.fact(e.AttemptRunning)
        for rank in (0, 1):
            world.rank(rank).last_step = 20
            world.rank(rank).tell(metrics(20, loss=0.25 + rank))
            world.rank(rank).exit(0)
        ended = await world.fact(e.AttemptEnded)
        await world.until(lambda: not world.gangs.names)
    assert world.names() == [
        "AttemptStarting",
        "ResumeTargetChosen",
        "AttemptStarted",
        "AttemptRunning",
        "AttemptEnded",
    ]
    assert (ended.reason, ended.run_id, ended.attempt, ended.epoch) == (Reason.COMPLETED, RUN_ID, 1, 1)
    assert (ended.first_step, ended.last_step) == (1, 20)
    assert (ended.model_family, ended.project, ended.pool) == ("reasoning", "demo", "local")
    assert (ended.accelerator_kind, ended.accelerators) == ("cpu-slot", 2)
    seconds = (ended.ended_at - ended.started_at).total_seconds()
    assert seconds > 0
    assert ended.gpu_seconds == pytest.approx(2 * seconds)
    assert ended.last_metrics == (e.MetricValue(name="loss", value=0.25),)
    assert [(rank.rank, rank.exit_code) for rank in ended.ranks] == [(0, 0), (1, 0)]


async def test_facts_carry_who_what_for_and_the_trace(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
    claim, *commits = world.commits()
    assert (claim.first_seq, claim.term.epoch, claim.term.claim) == (0, 1, 1)
    placed_by = world.scheduler.commits[-1].commit_id
    for commit in commits:
        assert (commit.actor, commit.correlation_id, commit.causation_id) == (AGENT, RUN_ID, placed_by)
        assert commit.traceparent == TRACEPARENT
        assert (commit.term.epoch, commit.term.claim) == (1, 1)


async def test_ranks_are_told_the_contract(world: World) -> None:
    async with world.agent():
        await world.place()
        started = await world.fact(e.AttemptStarted)
        specs = [world.rank(rank).spec for rank in (0, 1)]
    assert [(s.rank, s.local_rank, s.world_size, s.local_world_size) for s in specs] == [(0, 0, 2, 2), (1, 1, 2, 2)]
    assert {(s.master_addr, s.master_port, s.attempt, s.epoch) for s in specs} == {("127.0.0.1", 29_500, 1, 1)}
    assert len({s.attempt_token for s in specs}) == 1
    assert specs[0].config_digest == run_spec().config_digest
    assert specs[0].code_archive_digest == sha("a")
    assert [d.manifest_digest for d in specs[0].datasets] == [sha("d")]
    assert specs[0].resume is None
    assert [(r.rank, r.node, r.actor) for r in started.ranks] == [
        (rank, "host-1", f"trackway-{RUN_ID}-1-r{rank}") for rank in (0, 1)
    ]
    assert all(rank.trainer_pid > 0 for rank in started.ranks)
    assert started.cluster_id == "cluster-1"


async def test_the_fence_stands_before_the_gang_and_the_checkpointer_is_asked_to_publish_it(world: World) -> None:
    world.gangs.reachable = False
    async with world.agent():
        await world.place()
        await world.fact(e.ResumeTargetChosen)
        assert not world.gangs.made
        assert [entry.body for entry in world.commit_log().entries()] == [Fence(epoch=1)]
        assert world.requests(e.SyncCommitLog) == [e.SyncCommitLog(run_id=RUN_ID)]


async def test_continues_from_the_newest_committed_checkpoint(world: World) -> None:
    run = CheckpointedRun(world.store, RUN_ID)
    run.log().append(Fence(epoch=1))
    run.save(10)
    newest = run.save(20)
    async with world.agent():
        await world.place()
        await world.place(2)
        chosen = await world.fact(e.ResumeTargetChosen, attempt=2)
        await world.fact(e.AttemptStarted, attempt=2)
        resume = world.rank(0, attempt=2).spec.resume
    assert (chosen.checkpoint.step, chosen.checkpoint.epoch, chosen.checkpoint.slot) == (20, 1, newest.slot)
    assert (resume.step, resume.path, resume.run_id) == (20, newest.body.path, RUN_ID)
    assert resume.manifest_digest == newest.body.manifest_digest


async def test_a_killed_rank_is_the_root_and_its_survivor_a_cascade(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        world.rank(1).exit(signal="SIGKILL", at_ms=10)
        world.rank(0).exit(1, error=reset_by_peer(), at_ms=40)
        ended = await world.fact(e.AttemptEnded)
    assert (ended.reason, ended.blamed_rank, ended.blamed_node) == (Reason.UNKNOWN_KILL, 1, "host-1")
    roles = {(item.rank, item.role) for item in ended.evidence}
    assert (1, CausalRole.INITIATING) in roles
    assert (0, CausalRole.CASCADE) in roles
    assert (0, CausalRole.INITIATING) not in roles
    assert [(rank.rank, rank.exit_code, rank.signal) for rank in ended.ranks] == [(0, 1, None), (1, None, "SIGKILL")]


async def test_a_hanging_survivor_is_stopped_and_not_blamed(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        world.rank(1).exit(signal="SIGSEGV", at_ms=10)
        ended = await world.fact(e.AttemptEnded)
    assert world.names()[-1] == "AttemptEnded"
    assert "AttemptStopping" not in world.names()
    assert (ended.reason, ended.blamed_rank) == (Reason.PROCESS_CRASH, 1)
    assert {item.role for item in ended.evidence if item.rank == 0} <= {CausalRole.TEARDOWN, CausalRole.UNKNOWN}
    assert ended.ranks[0].signal == "SIGTERM"


async def test_a_survivor_that_does_not_stop_delays_the_receipt_by_five_seconds(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        world.rank(0).obeys = False
        died_at = world.clock.now()
        world.rank(1).exit(signal="SIGSEGV")
        ended = await world.fact(e.AttemptEnded)
        await world.until(lambda: not world.gangs.names)
    assert ended.reason is Reason.PROCESS_CRASH
    assert 5.0 <= (ended.ended_at - died_at).total_seconds() < 60.0
    assert any(item.rank == 0 and "no terminal record" in item.excerpt for item in ended.evidence)


async def test_a_dead_actor_ends_the_attempt_with_the_clusters_words(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        world.rank(1).die(SubstrateCause.NODE_DIED, "NODE_DIED: health check failed")
        ended = await world.fact(e.AttemptEnded)
    assert (ended.reason, ended.blamed_rank) == (Reason.NODE_LOST, 1)
    assert "health check failed" in ended.evidence[0].excerpt


async def test_no_capacity_is_no_failure_and_costs_nothing(world: World) -> None:
    world.gangs.cpus = 1.0
    async with world.agent():
        await world.place()
        ended = await world.fact(e.AttemptEnded)
    assert world.names() == ["AttemptStarting", "ResumeTargetChosen", "AttemptEnded"]
    assert (ended.reason, ended.gpu_seconds) == (Reason.CAPACITY_TIMEOUT, 0.0)
    assert "not granted" in ended.cause


async def test_a_missing_program_is_an_invalid_configuration(world: World) -> None:
    def missing(rank):
        rank.tell(LaunchFailed(stage="execute", message="no such program", at_ms=1))
        rank.phase = RankPhase.ENDED

    world.gangs.program = missing
    async with world.agent():
        await world.place()
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.CONFIG_INVALID
    assert "AttemptStarted" not in world.names()
    assert ended.started_at >= world.facts()[0].starting_at


async def test_attempts_of_other_agents_are_left_alone(world: World) -> None:
    async with world.agent() as agent:
        await world.place(agent_id="agent-elsewhere")
        await world.place(2)
        await world.fact(e.AttemptStarted, attempt=2)
        assert list(agent.attempts) == [f"attempts/{RUN_ID}/2"]
    assert world.commits(1) == []


async def test_a_later_fence_in_the_store_stops_the_attempt(world: World) -> None:
    world.commit_log().append(Fence(epoch=9))
    async with world.agent():
        await world.place()
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.AGENT_LOST
    assert "epoch 9" in ended.cause
    assert not world.gangs.made


async def test_a_bug_of_ours_is_a_platform_error_and_stops_nobody_else(world: World, monkeypatch) -> None:
    async def broken(request):
        if request.name.attempt == 1:
            raise RuntimeError("a bug")
        return await create(request)

    create = world.gangs.create
    monkeypatch.setattr(world.gangs, "create", broken)
    async with world.agent():
        await world.place()
        ended = await world.fact(e.AttemptEnded)
        await world.place(2)
        await world.fact(e.AttemptStarted, attempt=2)
    assert ended.reason is Reason.PLATFORM_ERROR
