"""Writes one attempt's stream, patiently: the log may be away, another agent may have taken over."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from dataclasses import replace

from trackway_common.acceptance import Claimed
from trackway_common.clock import Clock
from trackway_common.commit import CommandContext
from trackway_common.errors import Fenced, Unavailable
from trackway_common.fact_reader import Judged
from trackway_common.stream_owner import StreamOwner

from trackway_trainer_agent.domain.attempt import AttemptState, initial
from trackway_trainer_agent.domain.commands import AttemptCommand

log = logging.getLogger(__name__)

Owner = StreamOwner[AttemptState, AttemptCommand]


class Claims:
    """Who holds which attempt, as the log says; fed by the owner's tail."""

    def __init__(self, writer_id: str) -> None:
        self._writer_id = writer_id
        self._writer_of: dict[str, str] = {}
        self._taken_over: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def note(self, judged: Judged) -> None:
        """Take in a judged commit."""
        if not isinstance(judged.verdict, Claimed):
            return
        scope, writer_id = judged.verdict.scope, judged.commit.writer_id
        if self.is_ours(scope) and writer_id != self._writer_id:
            self._taken_over[scope].set()
        self._writer_of[scope] = writer_id

    def is_ours(self, stream: str) -> bool:
        """The stream's last accepted claim is of this process."""
        return self._writer_of.get(stream) == self._writer_id

    async def taken_over(self, stream: str) -> None:
        """Wait until another writer claims what this one had claimed."""
        await self._taken_over[stream].wait()


class AttemptWriter:
    """One attempt's stream under this writer's claim."""

    def __init__(
        self,
        *,
        owner: Owner,
        claims: Claims,
        stream: str,
        epoch: int,
        context: CommandContext,
        clock: Clock,
    ) -> None:
        self._owner = owner
        self._claims = claims
        self._epoch = epoch
        self._context = context
        self._clock = clock
        self.stream = stream

    @property
    def state(self) -> AttemptState:
        """The attempt as read back from the log."""
        return self._owner.state(self.stream) or initial(self.stream)

    async def until_taken_over(self) -> None:
        """Raise ``Fenced`` as soon as another agent claims the stream."""
        await self._claims.taken_over(self.stream)
        raise Fenced(f"{self.stream} was taken over by another agent")

    async def claim(self, retry_s: float) -> None:
        """Take the stream over from whoever wrote it before.

        Raises:
            Fenced: somebody with a higher epoch, or somebody faster, has it.
        """
        while True:
            try:
                await self._owner.claim(self.stream, self._epoch)
            except Unavailable as error:
                log.info("waiting for the log", extra={"stream": self.stream, "error": str(error)})
                await self._clock.sleep(retry_s)
            else:
                return

    async def execute(self, command: AttemptCommand, name: str, *, retry_s: float) -> AttemptState:
        """Carry the command out, however long the log is away; ``name`` tells its repetitions from other commands.

        Raises:
            Fenced: another writer has the stream: stop writing, leave the ranks alone.
            CommandRejected: the attempt is not where the command needs it.
        """
        context = replace(self._context, command_id=f"{self.stream}/{name}")
        while True:
            try:
                await self._hold()
                return (await self._owner.execute(self.stream, command, context)).state
            except Unavailable as error:
                log.info("waiting for the log", extra={"stream": self.stream, "error": str(error)})
                await self._clock.sleep(retry_s)

    async def _hold(self) -> None:
        """Claim again what an uncertain append lost; never against another writer."""
        if self._owner.holds(self.stream):
            return
        if not self._claims.is_ours(self.stream):
            raise Fenced(f"{self.stream} was taken over by another agent")
        await self._owner.claim(self.stream, self._epoch)
