"""The trainer-agent put together: log, fold, cluster, attempts, server."""

from __future__ import annotations

import asyncio
import sys
from functools import partial

from trackway_common.clock import Clock, SystemClock
from trackway_common.event_log import EventLog
from trackway_common.events import AgentHeartbeat
from trackway_common.ids import uuid7
from trackway_common.object_store import open_store
from trackway_common.request_sender import RequestSender
from trackway_common.rpc import RpcServer, serve
from trackway_common.service import beat
from trackway_common.stream_owner import StreamOwner, Writer
from trackway_common.topics import ATTEMPTS

from trackway_trainer_agent.adapters.driver_process import DriverProcess
from trackway_trainer_agent.adapters.log_spool import LogSpools
from trackway_trainer_agent.domain.decider import DECIDER
from trackway_trainer_agent.entrypoints.grpc_api import AgentApi, servable
from trackway_trainer_agent.gangs import Gangs
from trackway_trainer_agent.settings import TrainerAgentSettings
from trackway_trainer_agent.shell.agent import Agent
from trackway_trainer_agent.shell.attempt_writer import Claims, Owner
from trackway_trainer_agent.shell.attempts import Attempts
from trackway_trainer_agent.shell.cluster_pulse import BEAT_S, ClusterPulse
from trackway_trainer_agent.shell.heartbeat import announce
from trackway_trainer_agent.shell.timing import Timing
from trackway_trainer_agent.shell.warm_gangs import WarmGangs
from trackway_trainer_agent.worker.environment_report import observe_environment

SERVICE = "trainer-agent"
CONNECT_LIMIT_S = 2.0


async def run_trainer_agent(settings: TrainerAgentSettings, event_log: EventLog) -> None:
    """Serve until cancelled; what trains goes on then, and the next agent finds it.

    Raises:
        Unavailable: the address can't be bound.
    """
    spools = LogSpools(settings.state / SERVICE / "spool")
    api = AgentApi(spools)
    server = await serve(settings.rpc, [servable(api)])
    driver = DriverProcess(address=settings.ray.address, namespace=settings.ray.namespace, clock=SystemClock())
    try:
        attempts = await _attempts(settings, event_log, driver, spools, server.address)
        agent = Agent(attempts, event_log)
        api.follow(agent)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(driver.run(), name="Ray driver")
            await _work(tasks, settings, attempts, agent, server)
    finally:
        await server.stop()


async def _work(
    tasks: asyncio.TaskGroup, settings: TrainerAgentSettings, attempts: Attempts, agent: Agent, server: RpcServer
) -> None:
    clock, sender, pulse = attempts.clock, attempts.sender, attempts.pulse
    tasks.create_task(attempts.owner.run(), name="fold attempts")
    tasks.create_task(pulse.run(), name="cluster pulse")
    tasks.create_task(agent.run(), name="attempts")
    tasks.create_task(_show_health(server, agent, pulse, clock), name="health")
    instance = attempts.writer_id.partition("/")[2]
    tasks.create_task(beat(sender, clock, SERVICE, instance, server.address), name="beat")
    itself = await _itself(settings, server.address)
    tasks.create_task(announce(sender, clock, pulse, itself, lambda: tuple(agent.attempts)), name="announce")
    await asyncio.to_thread(attempts.spools.forget_old)


async def _attempts(
    settings: TrainerAgentSettings, event_log: EventLog, gangs: Gangs, spools: LogSpools, address: str
) -> Attempts:
    clock, writer_id = SystemClock(), f"{SERVICE}/{settings.instance or uuid7()}"
    claims = Claims(writer_id)
    patience = Timing(placement_wait_s=settings.agent.placement_wait_s, stop_grace_s=settings.agent.stop_grace_s)
    return Attempts(
        event_log=event_log,
        owner=_owner(event_log, Writer(writer_id=writer_id, endpoint=address), claims),
        claims=claims,
        writer_id=writer_id,
        agent_id=settings.agent.agent_id,
        gangs=gangs,
        warm=WarmGangs(clock),
        pulse=ClusterPulse(gangs, clock, partial(_listening, settings.ray.address)),
        sender=RequestSender(event_log, writer_id, clock, uuid7),
        store=await asyncio.to_thread(open_store, settings.store.url),
        store_url=settings.store.url,
        spools=spools,
        timing=patience,
        clock=clock,
    )


def _owner(event_log: EventLog, writer: Writer, claims: Claims) -> Owner:
    return StreamOwner(
        event_log=event_log,
        topic=ATTEMPTS,
        decider=DECIDER,
        writer=writer,
        clock=SystemClock(),
        ids=uuid7,
        on_judged=claims.note,
    )


async def _itself(settings: TrainerAgentSettings, address: str) -> AgentHeartbeat:
    """What every rank of the pool is expected to hold is what this interpreter holds."""
    environment = await asyncio.to_thread(observe_environment, sys.executable)
    return AgentHeartbeat(
        agent_id=settings.agent.agent_id,
        endpoint=address,
        pool=settings.agent.pool,
        environment_digest=environment.digest,
        python_version=environment.python_version,
    )


async def _show_health(server: RpcServer, agent: Agent, pulse: ClusterPulse, clock: Clock) -> None:
    await agent.ready.wait()
    while True:
        await server.set_serving(pulse.reachable)
        await clock.sleep(BEAT_S / 4)


async def _listening(address: str) -> bool:
    """Tell whether anything accepts connections where the cluster's head should be."""
    host, _, port = address.rpartition(":")
    try:
        async with asyncio.timeout(CONNECT_LIMIT_S):
            _, writer = await asyncio.open_connection(host, int(port))
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
