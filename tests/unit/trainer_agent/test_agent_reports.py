"""What ranks report besides their end."""

from __future__ import annotations

from trackway_common import events as e
from trackway_common.testing.run_facts import RUN_ID, sha

from tests.unit.trainer_agent.reports import environment, line, metrics, sample
from tests.unit.trainer_agent.world import World


async def test_environments_are_kept_and_compared(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        world.rank(0).tell(environment(sha("e")))
        world.rank(1).tell(environment(sha("f")))
        await world.until(lambda: world.names().count("EnvironmentObserved") == 2)
    observed = {fact.rank: fact for fact in world.facts() if isinstance(fact, e.EnvironmentObserved)}
    assert {rank: fact.differs_from_pinned for rank, fact in observed.items()} == {0: False, 1: True}
    assert observed[0].report_digest.startswith("sha256:")


async def test_telemetry_carries_record_numbers_and_heartbeats(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        rank = world.rank(0)
        rank.last_step = 3
        for record in (line("hello"), metrics(3, loss=0.5), sample()):
            rank.tell(record)
        await world.until(lambda: any(batch.samples for batch in world.telemetry()))
        beats = await world.until(
            lambda: [b for b in world.telemetry() if b.rank == 0 and b.heartbeat and b.heartbeat.last_step == 3][1:]
        )
    batches = [batch for batch in world.telemetry() if batch.rank == 0]
    assert [item.text for batch in batches for item in batch.logs] == ["hello"]
    assert [(i.record, i.step, i.values) for b in batches for i in b.steps] == [
        (3, 3, (e.MetricValue(name="loss", value=0.5),))
    ]
    assert [(item.record, item.memory_bytes) for batch in batches for item in batch.samples] == [(4, 5 << 20)]
    assert {(b.run_id, b.attempt, b.epoch) for b in batches} == {(RUN_ID, 1, 1)}
    assert beats
    assert [spooled.line.text for spooled in world.spools.of(RUN_ID, 1).read()] == ["hello"]
