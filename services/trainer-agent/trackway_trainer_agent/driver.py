"""The Ray driver, a child process of the agent: ``python -m trackway_trainer_agent.driver ADDRESS NAMESPACE``.

A process of its own because a driver exits about a minute after its cluster's head died, and because Ray's
threads are none of an event loop's business. Standard input is a socket to the agent; it ends when that closes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

from trackway_common.errors import TrackwayError, Unavailable
from trackway_common.telemetry import configure_logging

from trackway_trainer_agent.adapters.driver_calls import (
    Answer,
    Call,
    Connected,
    CreateGang,
    DrainRank,
    KillRank,
    ListGangs,
    Order,
    RemoveGang,
    RenewRank,
    ShowStacks,
    StartRank,
    StopRank,
    ViewCluster,
    read_frame,
    write_frame,
)
from trackway_trainer_agent.adapters.ray_cluster import join
from trackway_trainer_agent.adapters.ray_gangs import RayGangs
from trackway_trainer_agent.gangs import Gangs

log = logging.getLogger(__name__)

CHECK_EVERY_S = 1.0
CHECK_LIMIT_S = 5.0
"""A head that is silent for so long is dead or new; a fresh driver finds out which."""
MAX_WAITING = 64
"""Gangs that wait for their placement at once, each in a thread."""


async def serve(gangs: Gangs, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry out calls, each as a task of its own, until the agent is gone."""
    write_frame(writer, Connected())
    async with asyncio.TaskGroup() as tasks:
        while isinstance(frame := await read_frame(reader), Call):
            tasks.create_task(_answer(gangs, frame, writer))
        # What is still asked for has nobody left who waits for it.
        raise _AgentGone


class _AgentGone(Exception):
    """The other end of the socket was closed."""


async def _answer(gangs: Gangs, call: Call, writer: asyncio.StreamWriter) -> None:
    try:
        answer = Answer(call.number, await carry_out(gangs, call.order))
    except TrackwayError as error:
        answer = Answer(call.number, None, error)
    except Exception as error:
        # Top of this task: the agent waits for an answer, whatever went wrong with one call.
        log.warning("call failed", extra={"order": type(call.order).__name__, "error": repr(error)}, exc_info=True)
        answer = Answer(call.number, None, Unavailable(f"Ray: {type(error).__name__}: {error}"))
    write_frame(writer, answer)


async def carry_out(gangs: Gangs, order: Order) -> object:
    """The method that an order stands for."""
    match order:
        case ViewCluster():
            return await gangs.cluster()
        case ListGangs():
            return await gangs.existing()
        case CreateGang():
            return await gangs.create(order.request)
        case RenewRank():
            return await gangs.renew(order.gang, order.rank)
        case StartRank():
            await gangs.start(order.gang, order.rank, order.spec)
        case DrainRank():
            return await gangs.drain(order.gang, order.rank, order.after)
        case ShowStacks():
            return await gangs.stacks(order.gang, order.rank)
        case StopRank():
            await gangs.stop(order.gang, order.rank, order.grace_s)
        case KillRank():
            await gangs.kill(order.gang, order.rank)
        case RemoveGang():
            await gangs.remove(order.gang)
    return None


async def _leave_when_silent(gangs: RayGangs) -> None:
    """End the process when the head stops answering: no call could succeed any more."""
    while True:
        await asyncio.sleep(CHECK_EVERY_S)
        try:
            async with asyncio.timeout(CHECK_LIMIT_S):
                await gangs.cluster()
        except (TimeoutError, Unavailable) as error:
            log.warning("the cluster does not answer", extra={"error": repr(error)})
            os._exit(1)


async def _main(address: str, namespace: str, agent: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(MAX_WAITING))
    # Nothing is sent before the first message of ours: what can be read now is that the agent is gone.
    loop.add_reader(agent, os._exit, 0)
    gangs = RayGangs(peer=await asyncio.to_thread(join, address, namespace))
    loop.remove_reader(agent)
    reader, writer = await asyncio.open_connection(sock=agent)
    watching = asyncio.create_task(_leave_when_silent(gangs))
    try:
        await serve(gangs, reader, writer)
    except* _AgentGone:
        log.info("the agent is gone")
    except* Exception:
        # Top of the process: report, and let the agent start another one.
        log.exception("the driver failed")
    watching.cancel()
    # Ray's exit handlers wait for a cluster that may be gone; nothing here needs them: all is detached.
    os._exit(0)


def main() -> None:
    """Connect, then serve the agent."""
    configure_logging("trainer-agent-driver")
    agent = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    asyncio.run(_main(sys.argv[1], sys.argv[2], agent))


if __name__ == "__main__":
    main()
