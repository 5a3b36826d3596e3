"""An agent with a log in memory, a store in memory and a cluster that does what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from trackway_common import events as e
from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.clock import ManualClock
from trackway_common.codec import decode_commit, decode_request, decode_telemetry
from trackway_common.commit import Commit
from trackway_common.event_log import InMemoryEventLog
from trackway_common.ids import attempt_stream, uuid7
from trackway_common.object_store import InMemoryObjectStore
from trackway_common.request_sender import RequestSender
from trackway_common.stream_owner import StreamOwner, Writer
from trackway_common.testing.run_facts import RUN_ID, RunFacts, append_commits, run_spec
from trackway_common.topics import ATTEMPTS, COMMANDS, TELEMETRY
from trackway_trainer_agent.adapters.log_spool import LogSpools
from trackway_trainer_agent.domain.decider import DECIDER
from trackway_trainer_agent.gangs import GangName
from trackway_trainer_agent.shell.agent import Agent
from trackway_trainer_agent.shell.attempt_writer import Claims
from trackway_trainer_agent.shell.attempts import Attempts
from trackway_trainer_agent.shell.cluster_pulse import ClusterPulse
from trackway_trainer_agent.shell.timing import Timing
from trackway_trainer_agent.shell.warm_gangs import WarmGangs

from tests.support.tasks import cancel
from tests.unit.trainer_agent.fake_gangs import FakeGangs, FakeRank

F = TypeVar("F")
LIMIT_S = 20.0
TICK_S = 0.02
"""Of the manual clock, per millisecond of the real one: twenty times as fast, where nothing delays it."""
REAL_TICK_S = 0.001
"""As fast as the real one."""
AGENT = "agent-local"


class World:
    """Everything outside of the agent, which outlives it."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock()
        self.log = InMemoryEventLog(self.clock)
        self.store = InMemoryObjectStore()
        self.gangs = FakeGangs()
        self.listening = True
        self.scheduler = RunFacts()
        self.spools = LogSpools(folder)
        self.timing = Timing()
        self.store_url = "file:///nowhere"
        self.limit_s = LIMIT_S
        self.tick_s = TICK_S
        self._sent = 0

    async def order(self, *facts: e.Fact) -> None:
        """The scheduler commits facts of the run."""
        self.scheduler.run(*facts)
        new = self.scheduler.commits[self._sent :]
        self._sent = len(self.scheduler.commits)
        await append_commits(self.log, new)

    async def place(self, attempt: int = 1, *, world_size: int = 2, submit: bool = True, **changes: object) -> None:
        """Submit the run at its first attempt; place the attempt here."""
        if attempt == 1 and submit:
            await self.order(e.RunSubmitted(run_id=RUN_ID, spec=run_spec(), submitted_at=self.clock.now()))
        placed = e.AttemptPlaced(
            attempt=attempt,
            epoch=attempt,
            pool="local",
            agent_id=AGENT,
            ranks=tuple(e.RankPlacement(rank=rank, bundle=rank, cpus=1.0) for rank in range(world_size)),
            placed_at=self.clock.now(),
        )
        await self.order(replace(placed, **changes))

    def rank(self, rank: int, attempt: int = 1) -> FakeRank:
        """A rank of the cluster."""
        return self.gangs.rank(GangName(run_id=RUN_ID, attempt=attempt), rank)

    def commit_log(self) -> CommitLog:
        """The run's commit log, as a checkpointer sees it."""
        return CommitLog(self.store, RUN_ID, writer="test", now_ms=lambda: 1)

    def commits(self, attempt: int = 1) -> list[Commit]:
        """Commits of an attempt's stream, claims among them."""
        stream = attempt_stream(RUN_ID, attempt)
        decoded = [decode_commit(record.value) for record in self.log.records(ATTEMPTS)]
        return [commit for commit in decoded if commit.stream == stream]

    def facts(self, attempt: int = 1) -> list[e.Fact]:
        """Facts of an attempt."""
        return [fact for commit in self.commits(attempt) if commit.first_seq for fact in commit.facts]

    def names(self, attempt: int = 1) -> list[str]:
        """Names of an attempt's facts."""
        return [type(fact).__name__ for fact in self.facts(attempt)]

    def requests(self, kind: type[F]) -> list[F]:
        """Requests of this kind that were sent."""
        bodies = [decode_request(record.value).body for record in self.log.records(COMMANDS)]
        return [body for body in bodies if isinstance(body, kind)]

    def telemetry(self) -> list[e.TelemetryBatch]:
        """Batches that were sent."""
        return [decode_telemetry(record.value) for record in self.log.records(TELEMETRY)]

    async def fact(self, kind: type[F], attempt: int = 1) -> F:
        """The attempt's first fact of this kind, once it is there."""
        return (await self.until(lambda: [f for f in self.facts(attempt) if isinstance(f, kind)]))[0]

    async def until(self, look: Callable[[], F]) -> F:
        """What a look gives, once it is true."""
        async with asyncio.timeout(self.limit_s):
            while not (seen := look()):
                await asyncio.sleep(0.002)
            return seen

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[Agent]:
        """Run an agent process; leaving the block kills it."""
        writer_id = f"trainer-agent/{uuid7()}"
        claims = Claims(writer_id)
        owner = StreamOwner(
            event_log=self.log,
            topic=ATTEMPTS,
            decider=DECIDER,
            writer=Writer(writer_id=writer_id, endpoint="127.0.0.1:1"),
            clock=self.clock,
            ids=uuid7,
            on_judged=claims.note,
        )
        attempts = Attempts(
            event_log=self.log,
            owner=owner,
            claims=claims,
            writer_id=writer_id,
            agent_id=AGENT,
            gangs=self.gangs,
            warm=WarmGangs(self.clock),
            pulse=ClusterPulse(self.gangs, self.clock, self._is_listening),
            sender=RequestSender(self.log, writer_id, self.clock, uuid7),
            store=self.store,
            store_url=self.store_url,
            spools=self.spools,
            timing=self.timing,
            clock=self.clock,
        )
        agent = Agent(attempts, self.log)
        tasks = [
            asyncio.create_task(work) for work in (owner.run(), attempts.pulse.run(), agent.run(), self._run_clock())
        ]
        try:
            yield agent
        finally:
            done = [task for task in tasks if task.done()]
            await cancel(*tasks)
            assert not done, done

    async def _is_listening(self) -> bool:
        return self.listening

    async def _run_clock(self) -> None:
        while True:
            await asyncio.sleep(0.001)
            self.clock.advance(self.tick_s)
