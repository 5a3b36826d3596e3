"""``Gangs`` through the Ray driver, a child process that is started again whenever it ends."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Mapping
from itertools import count
from typing import cast

from trackway_common.clock import Clock
from trackway_common.errors import Unavailable

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
from trackway_trainer_agent.gangs import ClusterView, GangName, GangRequest
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import DrainBatch, RankDescription, StackDump

log = logging.getLogger(__name__)

RESTART_S = 0.5
CALL_LIMIT_S = 30.0
"""Longer than the driver's own limits: only a driver that hangs is met by it."""
LEAVE_LIMIT_S = 2.0
STDERR = 2
"""What Ray prints goes to the service's log."""


class DriverProcess:
    """Owns the child; ``run`` belongs in the service's task group."""

    def __init__(self, *, address: str, namespace: str, clock: Clock) -> None:
        self._arguments = (address, namespace)
        self._clock = clock
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._writer: asyncio.StreamWriter | None = None
        self.pid: int | None = None

    async def run(self) -> None:
        """Keep a driver running, for ever."""
        while True:
            await self._run_once()
            await self._clock.sleep(RESTART_S)

    async def cluster(self) -> ClusterView:
        return cast("ClusterView", await self._call(ViewCluster(), CALL_LIMIT_S))

    async def existing(self) -> Mapping[GangName, frozenset[int]]:
        return cast("Mapping[GangName, frozenset[int]]", await self._call(ListGangs(), CALL_LIMIT_S))

    async def create(self, request: GangRequest) -> tuple[RankDescription, ...]:
        # The driver's own limits add up to more than the wait for the placement.
        made = await self._call(CreateGang(request=request), request.wait_s + 10 * CALL_LIMIT_S)
        return cast("tuple[RankDescription, ...]", made)

    async def renew(self, gang: GangName, rank: int) -> RankDescription:
        return cast("RankDescription", await self._call(RenewRank(gang=gang, rank=rank), CALL_LIMIT_S))

    async def start(self, gang: GangName, rank: int, spec: RankSpec) -> None:
        await self._call(StartRank(gang=gang, rank=rank, spec=spec), CALL_LIMIT_S)

    async def drain(self, gang: GangName, rank: int, after: int) -> DrainBatch:
        return cast("DrainBatch", await self._call(DrainRank(gang=gang, rank=rank, after=after), CALL_LIMIT_S))

    async def stacks(self, gang: GangName, rank: int) -> StackDump:
        return cast("StackDump", await self._call(ShowStacks(gang=gang, rank=rank), CALL_LIMIT_S))

    async def stop(self, gang: GangName, rank: int, grace_s: float) -> None:
        await self._call(StopRank(gang=gang, rank=rank, grace_s=grace_s), CALL_LIMIT_S)

    async def kill(self, gang: GangName, rank: int) -> None:
        await self._call(KillRank(gang=gang, rank=rank), CALL_LIMIT_S)

    async def remove(self, gang: GangName) -> None:
        await self._call(RemoveGang(gang=gang), CALL_LIMIT_S)

    async def _call(self, order: Order, limit_s: float) -> object:
        if self._writer is None:
            raise Unavailable("the Ray driver is not connected")
        number = next(self._numbers)
        answered: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        write_frame(self._writer, Call(number, order))
        try:
            async with asyncio.timeout(limit_s):
                return await answered
        except TimeoutError as error:
            raise Unavailable(
                f"the Ray driver gave no answer to {type(order).__name__} within {limit_s:g} s"
            ) from error
        finally:
            self._waiting.pop(number, None)

    async def _run_once(self) -> None:
        ours, theirs = socket.socketpair()
        command = (sys.executable, "-m", "trackway_trainer_agent.driver", *self._arguments)
        with theirs:
            child = await asyncio.create_subprocess_exec(*command, stdin=theirs.fileno(), stdout=STDERR)
        self.pid = child.pid
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            await self._read(reader, writer)
        finally:
            self._disconnect()
            writer.close()
            await _leave(child)
        log.warning("the Ray driver ended", extra={"driver_pid": child.pid, "exit_code": child.returncode})

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (frame := await read_frame(reader)) is not None:
            match frame:
                case Connected():
                    log.info("the Ray driver is connected", extra={"driver_pid": self.pid})
                    self._writer = writer
                case Answer():
                    self._take(frame)
                case Call():
                    log.error("the Ray driver sent a call")

    def _take(self, answer: Answer) -> None:
        waiting = self._waiting.get(answer.number)
        if waiting is None or waiting.done():
            return
        if answer.error is not None:
            waiting.set_exception(answer.error)
        else:
            waiting.set_result(answer.result)

    def _disconnect(self) -> None:
        self._writer = None
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Unavailable("the Ray driver ended before it answered"))


async def _leave(child: asyncio.subprocess.Process) -> None:
    """The driver ends by itself when its socket closes; one that hangs is killed. Its actors stay."""
    try:
        async with asyncio.timeout(LEAVE_LIMIT_S):
            await child.wait()
    except TimeoutError:
        child.kill()
        await child.wait()
