"""Follows the runs topic and works on what it orders, a bounded number at once."""

from __future__ import annotations

import asyncio

from trackway_common.event_log import EventLog
from trackway_common.fact_reader import FactReader
from trackway_common.topics import RUNS

from trackway_evaluator.domain.order import Order
from trackway_evaluator.shell.evaluation_shell import EvaluationShell
from trackway_evaluator.shell.run_book import RunBook


class OrderDesk:
    """Takes orders once what was decided about them before is known."""

    def __init__(
        self, event_log: EventLog, shell: EvaluationShell, evaluations_read: asyncio.Event, parallel: int
    ) -> None:
        self._reader = FactReader(event_log, RUNS)
        self._shell = shell
        self._evaluations_read = evaluations_read
        self._places = asyncio.Semaphore(parallel)
        self._book = RunBook()
        self.caught_up = self._reader.caught_up

    async def run(self) -> None:
        """Work for ever; belongs in the service's task group."""
        await self._evaluations_read.wait()
        async with asyncio.TaskGroup() as working:
            async for batch in self._reader.read():
                for order in (order for judged in batch for order in self._book.take(judged)):
                    if self._shell.is_open(order):
                        working.create_task(self._work(order), name=f"evaluate {order.run_id}")

    async def _work(self, order: Order) -> None:
        async with self._places:
            await self._shell.carry_out(order)
