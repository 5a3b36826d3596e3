"""Waits out a log or a store that is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from trackway_common.clock import Clock
from trackway_common.commit import CommandContext
from trackway_common.errors import Unavailable
from trackway_common.ids import evaluation_stream
from trackway_common.stream_owner import StreamOwner

from trackway_evaluator.domain.commands import Command
from trackway_evaluator.domain.order import Order
from trackway_evaluator.domain.state import RunEvaluations

log = logging.getLogger(__name__)

ACTOR = "evaluator"
RETRY_S = 0.5

T = TypeVar("T")
Owner = StreamOwner[RunEvaluations, Command]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatientOwner:
    """The stream owner, for callers that can only go on once the log has answered."""

    owner: Owner
    clock: Clock

    async def claim(self, order: Order) -> None:
        """Own the run's evaluations.

        Raises:
            Fenced: another evaluator claimed at the same time.
        """
        stream = evaluation_stream(order.run_id)
        while not self.owner.holds(stream):
            try:
                await self.owner.claim(stream)
            except Unavailable as error:
                await self._wait("the log", error)

    async def execute(self, order: Order, command: Command, name: str) -> None:
        """Carry a command out; under the same name a second time it changes nothing.

        Raises:
            CommandRejected: the decider refused.
            Fenced: another evaluator owns the run's evaluations.
        """
        stream = evaluation_stream(order.run_id)
        context = CommandContext(
            command_id=f"{order.order_id}/{name}",
            actor=ACTOR,
            causation_id=order.order_id,
            correlation_id=order.run_id,
        )
        while True:
            try:
                await self.owner.execute(stream, command, context)
                return
            except Unavailable as error:
                await self._wait("the log", error)
                # The claim that followed an uncertain append may itself have got no answer.
                await self.claim(order)

    async def from_storage(self, action: Callable[[], T]) -> T:
        """Result of an action that blocks on storage, run in a thread."""
        while True:
            try:
                return await asyncio.to_thread(action)
            except Unavailable as error:
                await self._wait("storage", error)

    async def _wait(self, what: str, error: Unavailable) -> None:
        log.info("waiting", extra={"for": what, "error": str(error)})
        await self.clock.sleep(RETRY_S)
