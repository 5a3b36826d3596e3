"""What every ``Gangs`` keeps: the fake of the unit tests and the Ray driver under one suite."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial

import pytest
import pytest_asyncio
from trackway_common.clock import SystemClock
from trackway_common.errors import CommandRejected
from trackway_common.events import Entrypoint, EntrypointKind
from trackway_trainer_agent.adapters.driver_process import DriverProcess
from trackway_trainer_agent.domain.observations import SubstrateCause
from trackway_trainer_agent.gangs import Bundle, GangName, GangRequest, Gangs, NotGranted, RankGone
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import LaunchFailed, RankPhase, TrainerExited, TrainerStarted

from tests.contract.gang_bench import LIMIT_S, Bench, forever, of_fake, of_ray, until
from tests.ray_head import ray_head
from tests.support.tasks import cancel
from tests.unit.trainer_agent.fake_gangs import FakeGangs

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def driver() -> AsyncIterator[DriverProcess]:
    with ray_head(cpus=4) as head, pytest.MonkeyPatch.context() as patch:
        for name, value in head.environment.items():
            patch.setenv(name, value)
        made = DriverProcess(address=head.address, namespace="trackway", clock=SystemClock())
        running = asyncio.create_task(made.run())
        await until(made.cluster)
        yield made
        await cancel(running)


@pytest.fixture(params=["memory", "ray"])
def gangs(request) -> Gangs:
    return FakeGangs() if request.param == "memory" else request.getfixturevalue("driver")


@pytest_asyncio.fixture(loop_scope="module")
async def bench(gangs: Gangs, tmp_path) -> AsyncIterator[Bench]:
    store_url = (tmp_path / "objects").as_uri()
    yield of_fake(gangs, store_url) if isinstance(gangs, FakeGangs) else of_ray(gangs, store_url)
    for name in await gangs.existing():
        await gangs.remove(name)


NAME = GangName(run_id="0199aaaa-0000-7000-8000-000000000001", attempt=1)
TWO = GangRequest(name=NAME, bundles=(Bundle(cpus=1),) * 2, wait_s=10.0)


def spec(bench: Bench, *argv: str, rank: int = 0) -> RankSpec:
    return RankSpec(
        run_id=NAME.run_id,
        attempt=1,
        epoch=1,
        attempt_token="token",
        rank=rank,
        world_size=2,
        local_rank=rank,
        local_world_size=2,
        group_rank=0,
        group_world_size=1,
        master_addr="127.0.0.1",
        master_port=1,
        entrypoint=Entrypoint(kind=EntrypointKind.COMMAND, argv=argv),
        store_url=bench.store_url,
        code_archive_digest=None,
        hyperparameters_json="{}",
        config_digest="sha256:0",
        seed=1,
    )


async def found(bench: Bench, rank: int, kind: type, *, gangs: Gangs | None = None):
    """The rank's record of this kind, once it is there."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            batch = await (gangs or bench.gangs).drain(NAME, rank, 0)
            for item in batch.records:
                if isinstance(item.record, kind):
                    return item.record
            assert batch.phase is not RankPhase.ENDED, batch
            await asyncio.sleep(0.05)


async def until_over(bench: Bench, rank: int) -> None:
    async with asyncio.timeout(LIMIT_S):
        while (await bench.gangs.drain(NAME, rank, 0)).phase is not RankPhase.ENDED:
            await asyncio.sleep(0.05)


async def test_a_gang_lands_and_is_listed(bench: Bench) -> None:
    before = await bench.gangs.cluster()
    ranks = await bench.gangs.create(TWO)
    assert len(ranks) == 2
    assert {rank.address for rank in ranks} == {"127.0.0.1"}
    assert all(rank.free_port > 0 and rank.node for rank in ranks)
    assert await bench.gangs.existing() == {NAME: frozenset({0, 1})}
    after = await bench.gangs.cluster()
    assert (before.cluster_id, before.cpus) == (after.cluster_id, after.cpus)
    assert after.cpus == 4
    assert 0 < after.largest_node_memory_bytes <= after.memory_bytes


async def test_exit_status_is_told_again_from_the_beginning(bench: Bench) -> None:
    await bench.gangs.create(TWO)
    await bench.gangs.start(NAME, 0, spec(bench, "false"))
    await bench.gangs.start(NAME, 1, spec(bench, "true", rank=1))
    failed, clean = await found(bench, 0, TrainerExited), await found(bench, 1, TrainerExited)
    assert (failed.exit_code, failed.signal, failed.stop_requested) == (1, None, False)
    assert (clean.exit_code, clean.signal) == (0, None)
    assert await found(bench, 0, TrainerExited) == failed


async def test_nothing_is_behind_the_cursor(bench: Bench) -> None:
    await bench.gangs.create(TWO)
    await bench.gangs.start(NAME, 0, spec(bench, "true"))
    await found(bench, 0, TrainerExited)
    batch = await bench.gangs.drain(NAME, 0, 0)
    while batch.phase is not RankPhase.ENDED or batch.records:
        batch = await bench.gangs.drain(NAME, 0, batch.cursor)
    assert (await bench.gangs.drain(NAME, 0, batch.cursor)).records == ()


async def test_a_program_that_is_not_there(bench: Bench) -> None:
    await bench.gangs.create(TWO)
    await bench.gangs.start(NAME, 0, spec(bench, "/no/such/program"))
    failed = await found(bench, 0, LaunchFailed)
    assert failed.stage == "execute"
    assert "no/such/program" in failed.message


@pytest.mark.parametrize(("way", "signals"), [("kill", {"SIGKILL"}), ("stop", {"SIGTERM", "SIGKILL"})])
async def test_stopping_a_rank_is_told_as_our_doing(bench: Bench, way: str, signals: set[str]) -> None:
    await bench.gangs.create(TWO)
    await bench.gangs.start(NAME, 0, spec(bench, "sleep", "1000"))
    assert (await found(bench, 0, TrainerStarted)).pid > 0
    await (bench.gangs.kill(NAME, 0) if way == "kill" else bench.gangs.stop(NAME, 0, 1.0))
    ended = await found(bench, 0, TrainerExited)
    assert ended.stop_requested
    assert ended.signal in signals


async def test_a_foreign_kill_is_not_our_doing(bench: Bench) -> None:
    await bench.gangs.create(TWO)
    await bench.gangs.start(NAME, 0, spec(bench, "sleep", "1000"))
    started = await found(bench, 0, TrainerStarted)
    bench.kill_program(NAME, 0, started.pid)
    ended = await found(bench, 0, TrainerExited)
    assert (ended.signal, ended.exit_code, ended.stop_requested) == ("SIGKILL", None, False)


async def test_a_dead_actor_is_gone_for_good(bench: Bench) -> None:
    ranks = await bench.gangs.create(TWO)
    bench.kill_actor(NAME, 0, ranks[0].actor_pid)
    with pytest.raises(RankGone) as gone:
        await forever(partial(bench.gangs.drain, NAME, 0, 0))
    assert (gone.value.rank, gone.value.cause) == (0, SubstrateCause.UNEXPLAINED)
    assert gone.value.text
    assert (await bench.gangs.drain(NAME, 1, 0)).phase is RankPhase.IDLE
    with pytest.raises(RankGone):
        await bench.gangs.kill(NAME, 0)
    assert (await bench.gangs.existing())[NAME] == frozenset({1})


async def test_start_again_changes_nothing_and_another_spec_is_refused(bench: Bench) -> None:
    await bench.gangs.create(TWO)
    sleeper = spec(bench, "sleep", "1000")
    await bench.gangs.start(NAME, 0, sleeper)
    await bench.gangs.start(NAME, 0, sleeper)
    with pytest.raises(CommandRejected):
        await bench.gangs.start(NAME, 0, replace(sleeper, attempt=2))


async def test_a_renewed_actor_is_as_new(bench: Bench) -> None:
    (before, _) = await bench.gangs.create(TWO)
    await bench.gangs.start(NAME, 0, spec(bench, "sleep", "1000"))
    started = await found(bench, 0, TrainerStarted)
    with pytest.raises(CommandRejected):
        await bench.gangs.renew(NAME, 0)
    await bench.gangs.kill(NAME, 0)
    await until_over(bench, 0)
    for _ in range(2):
        assert (await bench.gangs.renew(NAME, 0)).actor_pid == before.actor_pid
    assert (await bench.gangs.drain(NAME, 0, 0)).records == ()
    await bench.gangs.start(NAME, 0, replace(spec(bench, "sleep", "1000"), attempt=2, epoch=2))
    assert (await found(bench, 0, TrainerStarted)).pid != started.pid


async def test_another_client_finds_the_gang_and_its_facts(bench: Bench) -> None:
    await bench.gangs.create(TWO)
    await bench.gangs.start(NAME, 0, spec(bench, "sleep", "1000"))
    started = await found(bench, 0, TrainerStarted)
    again = await bench.again()
    assert await again.existing() == {NAME: frozenset({0, 1})}
    assert await found(bench, 0, TrainerStarted, gangs=again) == started
    await again.kill(NAME, 0)
    assert (await found(bench, 0, TrainerExited, gangs=again)).signal == "SIGKILL"


async def test_too_much_is_refused_and_leaves_nothing(bench: Bench) -> None:
    with pytest.raises(NotGranted, match="not granted"):
        await bench.gangs.create(replace(TWO, bundles=(Bundle(cpus=3),) * 2, wait_s=0.3))
    assert await bench.gangs.existing() == {}
    assert len(await bench.gangs.create(TWO)) == 2


async def test_removing_gives_everything_back(bench: Bench) -> None:
    await bench.gangs.create(replace(TWO, bundles=(Bundle(cpus=2),) * 2))
    await bench.gangs.start(NAME, 0, spec(bench, "sleep", "1000"))
    await bench.gangs.remove(NAME)
    assert await bench.gangs.existing() == {}
    with pytest.raises(RankGone):
        await bench.gangs.drain(NAME, 0, 0)
    await bench.gangs.remove(NAME)
    assert len(await bench.gangs.create(replace(TWO, bundles=(Bundle(cpus=2),) * 2))) == 2
