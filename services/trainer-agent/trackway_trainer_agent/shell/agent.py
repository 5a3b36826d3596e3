"""The agent: follows the scheduler's orders and runs every attempt that was placed here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from functools import reduce

from trackway_common.attempt_shape import spec_of_attempt
from trackway_common.commit import UnknownFact
from trackway_common.errors import Unavailable
from trackway_common.event_log import EventLog
from trackway_common.events import AttemptPlaced
from trackway_common.fact_reader import FactReader, Judged
from trackway_common.ids import attempt_stream
from trackway_common.object_store import BlobStore
from trackway_common.topics import RUNS

from trackway_trainer_agent.domain.attempt import AttemptState, Phase, initial
from trackway_trainer_agent.domain.orders import RunOrders, evolve
from trackway_trainer_agent.domain.orders import initial as no_orders
from trackway_trainer_agent.gangs import GangName
from trackway_trainer_agent.shell.attempt_task import AttemptTask
from trackway_trainer_agent.shell.attempts import Attempts
from trackway_trainer_agent.shell.bring_up import gang_of
from trackway_trainer_agent.shell.leftovers import unresolved
from trackway_trainer_agent.shell.plan import Assignment
from trackway_trainer_agent.shell.second_look import Judge

log = logging.getLogger(__name__)

SWEEP_S = 10.0
"""Between two looks for gangs that no live attempt owns."""


class Agent:
    """Keeps one task per attempt that is placed here and not over."""

    def __init__(self, attempts: Attempts, event_log: EventLog) -> None:
        self._owner = attempts.owner
        self.judge = Judge(
            owner=attempts.owner,
            agent_id=attempts.agent_id,
            blobs=BlobStore(attempts.store),
            clock=attempts.clock,
        )
        self._gangs = attempts.gangs
        self._warm = attempts.warm
        self._agent_id = attempts.agent_id
        self._make_task = attempts.task
        self._clock = attempts.clock
        self._reader = FactReader(event_log, RUNS)
        self._orders: dict[str, RunOrders] = {}
        self._placed_by: dict[str, Judged] = {}
        """Per attempt stream the record that placed it."""
        self.attempts: dict[str, AttemptTask] = {}
        """Live ones, by stream."""
        self._done: set[str] = set()
        """Streams that this process is done with: closed, or taken over by another agent."""
        self.ready = asyncio.Event()
        """Set once everything that was ordered before the start is being carried out."""

    async def run(self) -> None:
        """Work until cancelled; gangs are left as they are then."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_orders(tasks), name="follow orders")
            tasks.create_task(self._begin(tasks), name="begin")
            tasks.create_task(self._sweep(tasks), name="sweep")

    def state(self, stream: str) -> AttemptState:
        """An attempt as the log tells of it."""
        return self._owner.state(stream) or initial(stream)

    def newest_attempt(self, run_id: str) -> int | None:
        """Number of the newest attempt of the run that was placed here."""
        orders = self._orders.get(run_id)
        return None if orders is None else max(self._mine(orders), default=None)

    async def _begin(self, tasks: asyncio.TaskGroup) -> None:
        await self._owner.caught_up.wait()
        await self._reader.caught_up.wait()
        self._carry_out(tasks, self._orders)
        self.ready.set()

    async def _follow_orders(self, tasks: asyncio.TaskGroup) -> None:
        async for batch in self._reader.read():
            touched = {run_id for judged in batch if judged.accepted for run_id in self._take(judged)}
            if self.ready.is_set():
                self._carry_out(tasks, touched)

    def _take(self, judged: Judged) -> Iterable[str]:
        kind, _, run_id = judged.commit.stream.partition("/")
        if kind != "runs":
            return ()
        facts = [fact for fact in judged.commit.facts if not isinstance(fact, UnknownFact)]
        self._orders[run_id] = reduce(evolve, facts, self._orders.get(run_id) or no_orders(run_id))
        for fact in facts:
            if isinstance(fact, AttemptPlaced):
                self._placed_by[attempt_stream(run_id, fact.attempt)] = judged
        return (run_id,)

    def _carry_out(self, tasks: asyncio.TaskGroup, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            orders = self._orders[run_id]
            for attempt in self._mine(orders):
                stream = attempt_stream(run_id, attempt)
                if self._has_work(orders, attempt):
                    self._ensure(tasks, orders, attempt)
                if not orders.next_comes_soon(attempt, self._agent_id) and attempt == max(self._mine(orders)):
                    self._warm.withdraw(run_id)
                order = orders.stop_order(attempt)
                if order is not None and stream in self.attempts:
                    self.attempts[stream].stop(order)

    def _mine(self, orders: RunOrders) -> list[int]:
        return [attempt for attempt, placed in orders.placed.items() if placed.agent_id == self._agent_id]

    def _has_work(self, orders: RunOrders, attempt: int) -> bool:
        stream = attempt_stream(orders.run_id, attempt)
        if stream in self._done:
            return False
        state = self.state(stream)
        if state.phase is not Phase.ENDED:
            return True
        # The next attempt's fence may be waiting for what became of its captures.
        following = self.state(attempt_stream(orders.run_id, attempt + 1))
        return bool(unresolved(state)) and not following.resume_chosen

    def _ensure(self, tasks: asyncio.TaskGroup, orders: RunOrders, attempt: int) -> None:
        stream = attempt_stream(orders.run_id, attempt)
        if stream in self.attempts or orders.spec is None:
            return
        by = self._placed_by[stream].commit
        assignment = Assignment(
            run_id=orders.run_id,
            placed=orders.placed[attempt],
            spec=spec_of_attempt(orders.spec, orders.placed[attempt]),
            submitted_at=orders.submitted_at,
            causation_id=by.commit_id,
            traceparent=by.traceparent,
        )
        self.attempts[stream] = task = self._make_task(assignment)
        log.info("attempt taken on", extra={"run_id": orders.run_id, "attempt": attempt})
        tasks.create_task(self._attend(stream, task), name=stream)

    async def _attend(self, stream: str, task: AttemptTask) -> None:
        try:
            await task.run()
        finally:
            del self.attempts[stream]
            self._done.add(stream)

    async def _sweep(self, tasks: asyncio.TaskGroup) -> None:
        await self.ready.wait()
        while True:
            try:
                for gang in await self._gangs.existing():
                    self._clear_if_over(tasks, gang)
            except Unavailable as error:
                log.debug("no sweep", extra={"error": str(error)})
            await self._clock.sleep(SWEEP_S)

    def _clear_if_over(self, tasks: asyncio.TaskGroup, gang: GangName) -> None:
        """A gang that was being made when its attempt was called off may come to stand after it was removed."""
        orders = self._orders.get(gang.run_id)
        if orders is None or gang.attempt not in self._mine(orders) or self._warm.taken_by(gang.run_id) == gang:
            return
        attempt = self._newest_in(gang, orders)
        if self.state(attempt_stream(gang.run_id, attempt)).phase is Phase.ENDED:
            self._ensure(tasks, orders, attempt)

    def _newest_in(self, gang: GangName, orders: RunOrders) -> int:
        """The last attempt that is known to have run in the gang: it may have taken it over."""
        states = ((attempt, self.state(attempt_stream(gang.run_id, attempt))) for attempt in self._mine(orders))
        return max((attempt for attempt, state in states if gang_of(state) == gang), default=gang.attempt)
