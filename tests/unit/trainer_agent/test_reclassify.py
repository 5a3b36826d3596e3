"""An attempt's receipt holds all that its verdict came from."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from trackway_common import events as e
from trackway_common.codec import decode_fact, decode_observations, encode_fact, encode_observations
from trackway_common.errors import CommandRejected
from trackway_common.ids import attempt_stream
from trackway_common.testing.run_facts import RUN_ID
from trackway_trainer_agent.domain.bounding import bounded
from trackway_trainer_agent.domain.classify import VERSION, classify
from trackway_trainer_agent.domain.observation_record import observed, recorded
from trackway_trainer_agent.domain.observations import (
    DeviceHealth,
    Filesystem,
    Frame,
    Hang,
    HostFacts,
    NodeLeaving,
    Observation,
    RankLost,
    RuleHit,
    StuckRank,
    SubstrateCause,
)
from trackway_trainer_agent.domain.reclassify import newer, reclassify
from trackway_trainer_agent.shell import second_look
from trackway_trainer_agent.shell.agent import Agent
from trackway_trainer_agent.shell.keeping import INLINE_BYTES

from tests.unit.trainer_agent.ends import CASES, T0, ended, raised
from tests.unit.trainer_agent.world import World

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
HOST = HostFacts(
    oom_kills=1,
    memory_bound_bytes=1 << 30,
    killed_over_bound_bytes=1 << 31,
    filesystems=(Filesystem(mount="/dev/shm", free_bytes=0, total_bytes=1 << 26),),
    kernel_lines=("Killed process 4711 (python)",),
    devices=(DeviceHealth(device="0", problem="2 uncorrectable ECC errors"),),
)
RULE = RuleHit(reason=e.TerminationReason.DATA_CORRUPT, rule="failure_rules[0]", matched="42", at_ms=T0)
STUCK = StuckRank(
    rank=1,
    node="n2",
    last_step=7,
    silent_s=61.5,
    frames=(Frame(file="train.py", line=3, function="load"),),
    stacks_source="faulthandler",
    stacks_digest="sha256:00",
)
OTHERS: tuple[Observation, ...] = (
    ended(0, signal="SIGKILL", host=HOST, rule=RULE),
    Hang(ranks=(STUCK,), limit_s=60.0, stepped=True, at_ms=T0),
    NodeLeaving(node="n2", cause=SubstrateCause.PREEMPTED, text="in 30 s", at_ms=T0, ranks=(0, 1)),
)


def receipt(world_size: int, seen: tuple[Observation, ...]) -> e.AttemptEnded:
    return e.AttemptEnded(
        run_id=RUN_ID,
        attempt=1,
        started_at=MOMENT,
        ended_at=MOMENT,
        observations=tuple(recorded(one) for one in seen),
        world_size=world_size,
    )


@pytest.mark.parametrize("seen", [one for seen, _, _ in CASES.values() for one in seen] + list(OTHERS))
def test_an_observation_comes_back_from_the_log_as_it_was(seen: Observation):
    kept = decode_fact(encode_fact(receipt(2, (seen,))))
    assert isinstance(kept, e.AttemptEnded)
    assert observed(kept.observations[0]) == seen


@pytest.mark.parametrize("name", CASES)
def test_the_receipt_alone_gives_the_same_verdict(name: str):
    seen = CASES[name][0]
    kept = decode_fact(encode_fact(receipt(2, seen)))
    assert isinstance(kept, e.AttemptEnded)
    assert reclassify(kept) == classify(2, seen)


def test_what_is_in_a_blob_is_judged_alike():
    seen = CASES["exception of one rank"][0]
    stored = e.Observations(world_size=2, seen=tuple(recorded(one) for one in seen))
    apart = replace(receipt(2, ()), observations_digest="sha256:00")
    assert reclassify(apart, decode_observations(encode_observations(stored))) == classify(2, seen)


@pytest.mark.parametrize("ended_so", [receipt(0, ()), replace(receipt(2, ()), observations_digest="sha256:00")])
def test_a_receipt_without_observations_is_not_judged(ended_so: e.AttemptEnded):
    with pytest.raises(CommandRejected, match="no observations"):
        reclassify(ended_so)


def test_a_newer_builds_observation_is_not_judged():
    with pytest.raises(CommandRejected, match="newer build"):
        reclassify(replace(receipt(1, ()), observations=(e.Observation(),)))


def test_what_is_kept_of_a_rank_is_bounded():
    huge = raised(
        0, message="x" * 10**6, chain=("y" * 10**6,) * 100, frames=(Frame(file="f", line=1, function="g"),) * 999
    )
    huge = replace(huge, stderr_tail=("z" * 10**5,) * 400, host=HostFacts(kernel_lines=("k" * 10**5,) * 999))
    body = encode_observations(e.Observations(seen=(recorded(bounded(huge)),)))
    assert len(body) < 64 * 1024
    lost = RankLost(rank=0, node="n", cause=SubstrateCause.UNEXPLAINED, text="t" * 10**6, at_ms=1)
    assert len(bounded(lost).text) < 5000


@pytest.mark.parametrize(
    ("version", "than", "later"),
    [
        ("2026-11-2", "2026-11-1", True),
        ("2026-11-10", "2026-11-9", True),
        ("2026-11-1", "2026-11-1", False),
        ("2026-10-9", "2026-11-1", False),
        ("2026-11-1", "", True),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, than: str, later: bool):
    assert newer(version, than) is later


async def run_to_failure(world: World, agent: Agent) -> e.AttemptEnded:
    await world.place(world_size=1)
    await world.fact(e.AttemptStarted)
    world.rank(0).exit(signal="SIGKILL")
    return await closed(world, agent)


async def closed(world: World, agent: Agent) -> e.AttemptEnded:
    """The receipt, once the agent has read it back."""
    stream = attempt_stream(RUN_ID, 1)
    ended_so = await world.until(lambda: agent.state(stream).ended)
    assert ended_so is not None
    return ended_so


async def test_a_newer_classifier_adds_its_verdict_once(world: World, monkeypatch: pytest.MonkeyPatch):
    async with world.agent() as agent:
        first = await run_to_failure(world, agent)
        same = await agent.judge.look_again(RUN_ID, 1, actor="ada")
        assert (same.recorded, same.verdict.reason) == (False, first.reason)
        later = replace(
            same.verdict, reason=e.TerminationReason.HOST_OOM, classifier_version="2999-1-1", cause="It was memory."
        )
        monkeypatch.setattr(second_look, "reclassify", lambda ended, stored: later)
        monkeypatch.setattr(second_look, "VERSION", "2999-1-1")
        look = await agent.judge.look_again(RUN_ID, 1, actor="ada")
        assert (look.recorded, look.before) == (True, first)
        again = await agent.judge.look_again(RUN_ID, 1, actor="ada")
        assert again.recorded is False
    verdict = await world.fact(e.AttemptReclassified)
    assert (verdict.reason, verdict.actor, verdict.cause) == (e.TerminationReason.HOST_OOM, "ada", "It was memory.")
    assert first.classifier_version == VERSION
    assert world.names().count("AttemptReclassified") == world.names().count("AttemptEnded") == 1


async def test_only_what_has_ended_here_is_judged_again(world: World):
    async with world.agent() as agent:
        with pytest.raises(CommandRejected, match="in the log"):
            await agent.judge.look_again(RUN_ID, 1, actor="ada")
        await world.place(world_size=1)
        await world.fact(e.AttemptStarted)
        with pytest.raises(CommandRejected, match="not ended"):
            await agent.judge.look_again(RUN_ID, 1, actor="ada")
        elsewhere = replace(agent.judge, agent_id="agent-elsewhere")
        with pytest.raises(CommandRejected, match="was run by agent-local"):
            await elsewhere.look_again(RUN_ID, 1, actor="ada")


async def test_many_observations_are_a_blob(world: World):
    world.gangs.cpus = 100
    async with world.agent() as agent:
        await world.place(world_size=40)
        await world.fact(e.AttemptStarted)
        for rank in range(40):
            world.rank(rank).exit(1, stderr_tail=("w" * 400,) * 50)
        big = await closed(world, agent)
        look = await agent.judge.look_again(RUN_ID, 1, actor="ada")
    assert big.observations == ()
    assert big.observations_digest is not None
    assert len(world.store.get(f"blobs/sha256/{big.observations_digest.partition(':')[2]}")) > INLINE_BYTES
    assert look.verdict.reason is big.reason
