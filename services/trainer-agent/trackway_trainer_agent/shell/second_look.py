"""Judges an attempt that has ended with the classifier of today, and records the verdict where it is another."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from trackway_common.clock import Clock
from trackway_common.commit import CommandContext
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.events import AttemptEnded, AttemptReclassified
from trackway_common.ids import attempt_stream
from trackway_common.object_store import BlobStore

from trackway_trainer_agent.domain.classify import VERSION, Classification
from trackway_trainer_agent.domain.commands import RecordVerdict
from trackway_trainer_agent.domain.reclassify import reclassified, reclassify
from trackway_trainer_agent.shell.attempt_writer import Owner
from trackway_trainer_agent.shell.keeping import fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """What came of it."""

    before: AttemptEnded | AttemptReclassified
    """The verdict that was in force."""
    verdict: Classification
    recorded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Of one agent: only an attempt's own agent appends to its stream."""

    owner: Owner
    agent_id: str
    blobs: BlobStore
    clock: Clock

    async def look_again(self, run_id: str, attempt: int, *, actor: str) -> SecondLook:
        """Judge again; what was decided on the first verdict stays.

        Raises:
            NotFound: the log has no such attempt.
            CommandRejected: it has not ended, ran elsewhere, or its receipt holds no observations.
            Unavailable: the log or the store is away.
        """
        stream = attempt_stream(run_id, attempt)
        state = self.owner.state(stream)
        if state is None or not state.agent_id:
            raise NotFound(f"no attempt {attempt} of run {run_id} is in the log; `trackway attempt list` shows them")
        if state.agent_id != self.agent_id:
            raise CommandRejected(
                f"{stream} was run by {state.agent_id}; ask that agent, the only one that writes to it",
                reason="ANOTHER_AGENT",
            )
        if state.ended is None:
            raise CommandRejected(f"{stream} has not ended: there is no verdict to revise", reason="NOT_ENDED")
        verdict = await asyncio.to_thread(reclassify, state.ended, await fetch(self.blobs, state.ended))
        before = state.reclassified or state.ended
        fact = reclassified(state.ended, verdict, actor=actor, at=self.clock.now())
        return SecondLook(before=before, verdict=verdict, recorded=await self._record(stream, state.epoch, fact))

    async def _record(self, stream: str, epoch: int, fact: AttemptReclassified) -> bool:
        if not self.owner.holds(stream):
            await self.owner.claim(stream, epoch)
        context = CommandContext(command_id=f"{stream}/verdict/{VERSION}", actor=fact.actor, correlation_id=fact.run_id)
        executed = await self.owner.execute(stream, RecordVerdict(verdict=fact), context)
        return bool(executed.facts) and not executed.repeated
