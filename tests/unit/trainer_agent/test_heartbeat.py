"""What the agent says it offers."""

from __future__ import annotations

from dataclasses import replace

from trackway_common.clock import ManualClock
from trackway_common.events import AgentHeartbeat
from trackway_trainer_agent.gangs import ClusterView
from trackway_trainer_agent.shell.cluster_pulse import ClusterPulse
from trackway_trainer_agent.shell.heartbeat import heartbeat

from tests.unit.trainer_agent.fake_gangs import FakeGangs

ITSELF = AgentHeartbeat(
    agent_id="agent-local", endpoint="h:1", pool="local", environment_digest="sha256:e", python_version="3.11.7"
)


async def listening() -> bool:
    return True


async def test_a_cluster_that_is_away_offers_nothing_but_its_agent_lives() -> None:
    gangs, clock = FakeGangs(cpus=4), ManualClock()
    pulse = ClusterPulse(gangs, clock, listening)
    assert heartbeat(ITSELF, pulse, ()) == ITSELF
    await pulse.ask()
    there = heartbeat(ITSELF, pulse, ("attempts/r/1",))
    assert (there.cluster_id, there.cpus, there.attempts) == ("cluster-1", 4.0, ("attempts/r/1",))
    assert (there.agent_id, there.pool, there.environment_digest) == ("agent-local", "local", "sha256:e")
    gangs.reachable = False
    clock.advance(10)
    await pulse.ask()
    away = heartbeat(ITSELF, pulse, ())
    assert (away.cluster_id, away.cpus, away.memory_bytes) == ("cluster-1", 0.0, 0)


async def test_the_largest_node_is_told_while_the_cluster_answers() -> None:
    class TwoNodes(FakeGangs):
        async def cluster(self) -> ClusterView:
            return replace(await super().cluster(), nodes=("a", "b"), largest_node_memory_bytes=3 << 30)

    gangs, clock = TwoNodes(), ManualClock()
    pulse = ClusterPulse(gangs, clock, listening)
    assert heartbeat(ITSELF, pulse, ()).largest_node_memory_bytes == 0
    await pulse.ask()
    there = heartbeat(ITSELF, pulse, ())
    assert (there.nodes, there.largest_node_memory_bytes) == (2, 3 << 30)
    gangs.reachable = False
    clock.advance(10)
    await pulse.ask()
    assert heartbeat(ITSELF, pulse, ()).largest_node_memory_bytes == 0


async def test_gone_is_only_what_answers_as_another_or_does_not_listen_any_more() -> None:
    gangs, clock, open_port = FakeGangs(), ManualClock(), [True]

    async def is_open() -> bool:
        return open_port[0]

    pulse = ClusterPulse(gangs, clock, is_open)
    await pulse.ask()
    assert not await pulse.lost("cluster-1", 10)
    assert await pulse.lost("cluster-0", 10)
    clock.advance(30)
    assert not await pulse.lost("cluster-1", 10)
    open_port[0] = False
    assert await pulse.lost("cluster-1", 10)
    open_port[0] = True
    clock.advance(40)
    assert await pulse.lost("cluster-1", 10)
