"""The checkpointer put together: store, log, commands, care, server."""

from __future__ import annotations

import asyncio

from trackway_common.clock import SystemClock
from trackway_common.event_log import EventLog
from trackway_common.ids import uuid7
from trackway_common.object_store import ObjectStore, open_store, refuse_without_conditional_create
from trackway_common.request_sender import RequestSender
from trackway_common.rpc import RpcServer, serve
from trackway_common.service import beat

from trackway_checkpointer.adapters.reading_position import ReadingPosition
from trackway_checkpointer.entrypoints.grpc_api import CheckpointApi, servable
from trackway_checkpointer.settings import CheckpointerSettings
from trackway_checkpointer.shell.caretaker import Caretaker, Pace
from trackway_checkpointer.shell.command_desk import CommandDesk
from trackway_checkpointer.shell.committer import Committer
from trackway_checkpointer.shell.publisher import Publisher
from trackway_checkpointer.shell.run_logs import RunLogs

SERVICE = "checkpointer"


async def run_checkpointer(settings: CheckpointerSettings, event_log: EventLog) -> None:
    """Serve until cancelled.

    Raises:
        Unavailable: the address can't be bound.
        CommandRejected: the store can't order writers.
    """
    clock, instance = SystemClock(), settings.instance or uuid7()
    store = await asyncio.to_thread(_usable_store, settings.store.url)
    logs = RunLogs(store, f"{SERVICE}/{instance}", clock)
    publisher = Publisher(event_log, store)
    pace = Pace(grace_ms=int(settings.checkpointer.grace_s * 1000), sweep_s=settings.checkpointer.sweep_s)
    caretaker = Caretaker(logs, publisher, pace, clock)
    desk = CommandDesk(event_log, ReadingPosition(store), Committer(logs, publisher, caretaker).carry_out, clock)
    server = await serve(settings.rpc, [servable(CheckpointApi(logs))])
    sender = RequestSender(event_log, f"{SERVICE}/{instance}", clock, uuid7)
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(publisher.follow(), name="follow checkpoints")
            tasks.create_task(caretaker.run(), name="care")
            tasks.create_task(_take_commands(caretaker, desk), name="commands")
            tasks.create_task(beat(sender, clock, SERVICE, instance, server.address), name="beat")
            tasks.create_task(_say_ready(server, caretaker, desk), name="health")
    finally:
        await server.stop()


def _usable_store(url: str) -> ObjectStore:
    store = open_store(url)
    refuse_without_conditional_create(store)
    return store


async def _take_commands(caretaker: Caretaker, desk: CommandDesk) -> None:
    # Before it is known what was published, slots would be sent twice.
    await caretaker.all_published.wait()
    await desk.run()


async def _say_ready(server: RpcServer, caretaker: Caretaker, desk: CommandDesk) -> None:
    await caretaker.all_published.wait()
    await desk.caught_up()
    await server.set_serving(True)
