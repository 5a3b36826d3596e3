"""A trainer-agent and a checkpointer as they run, on a real Ray head; only the log is in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from trackway_checkpointer.service import run_checkpointer
from trackway_checkpointer.settings import CheckpointerSettings
from trackway_common import events as e
from trackway_common.canonical import canonical_json
from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.codec import decode_commit, decode_request, decode_telemetry
from trackway_common.event_log import InMemoryEventLog
from trackway_common.events import Entrypoint, EntrypointKind
from trackway_common.ids import attempt_stream
from trackway_common.object_store import BlobStore, open_store
from trackway_common.settings import KafkaSettings, RpcSettings, StoreSettings
from trackway_common.testing.run_facts import RunFacts, append_commits, run_spec
from trackway_common.topics import ATTEMPTS, COMMANDS, TELEMETRY
from trackway_trainer_agent.service import run_trainer_agent
from trackway_trainer_agent.settings import AgentBlock, RayBlock, TrainerAgentSettings

from tests.integration.rank_harness import code_archive
from tests.ray_head import RayHead
from tests.support.tasks import cancel

F = TypeVar("F")
LIMIT_S = 90.0
TRAIN = """
import time
from pathlib import Path
import torch
import trackway.training as tw

with tw.session() as s:
    torch.manual_seed(s.seed)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    cursor = tw.DataCursor(seed=s.seed, dataset_len=512, batch_size=16)
    model = s.prepare(model=model, optimizer=optimizer, cursor=cursor)
    rows = torch.arange(512.0).reshape(512, 1).expand(512, 8) / 512
    step = s.restore()
    stop = torch.zeros(1)
    while not stop:
        step += 1
        loss = model(rows[next(cursor)]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.02)
        print(f"step {step}", flush=True)
        s.report(step, loss=loss.detach())
        if step % 10 == 0:
            s.checkpoint(step)
        stop.fill_(Path(s.config["stop_file"]).exists())
        torch.distributed.all_reduce(stop)
"""
"""Trains until a file exists; all ranks end at the same step."""


class Stack:
    """One run on one agent; the test is the scheduler."""

    def __init__(self, folder: Path, head: RayHead, run_id: str) -> None:
        self.log = InMemoryEventLog()
        self.run_id = run_id
        self.stop_file = folder / "stop"
        self._head = head
        self._folder = folder
        self._scheduler = RunFacts(run_id)
        self._sent = 0
        self._store = StoreSettings(url=(folder / "objects").as_uri())
        self._kafka = KafkaSettings(bootstrap="nowhere:1")

    async def submit(self, script: str = TRAIN) -> None:
        """Submit a run of the script."""
        archive = BlobStore(open_store(self._store.url)).put(code_archive({"train.py": script}))
        spec = run_spec(
            entrypoint=Entrypoint(kind=EntrypointKind.SCRIPT, argv=("train.py",)),
            code=e.CodeRef(requested=".", archive_digest=archive),
            hyperparameters_json=canonical_json({"stop_file": str(self.stop_file)}).decode(),
            datasets=(),
        )
        await self.order(e.RunSubmitted(run_id=self.run_id, spec=spec, submitted_at=self._scheduler.now))

    async def place(self, attempt: int, *, captures_in_flight: tuple[str, ...] = ()) -> None:
        """Place an attempt of two ranks."""
        placed = e.AttemptPlaced(
            attempt=attempt,
            epoch=attempt,
            pool="local",
            agent_id="agent-local",
            ranks=tuple(e.RankPlacement(rank=rank, bundle=rank, cpus=1.0) for rank in (0, 1)),
            placed_at=self._scheduler.now,
            captures_in_flight=captures_in_flight,
        )
        await self.order(placed)

    async def order(self, *facts: e.Fact) -> None:
        """Commit facts of the run."""
        self._scheduler.run(*facts)
        new = self._scheduler.commits[self._sent :]
        self._sent = len(self._scheduler.commits)
        await append_commits(self.log, new, run_id=self.run_id)

    @asynccontextmanager
    async def agent(self) -> AsyncIterator[asyncio.Task[None]]:
        """Run the trainer-agent; leaving the block stops it like SIGTERM does."""
        settings = TrainerAgentSettings(
            kafka=self._kafka,
            store=self._store,
            rpc=RpcSettings(),
            state=self._folder / "state",
            ray=RayBlock(address=self._head.address),
            agent=AgentBlock(placement_wait_s=20.0),
        )
        async with _running(run_trainer_agent(settings, self.log)) as task:
            yield task

    @asynccontextmanager
    async def checkpointer(self) -> AsyncIterator[None]:
        """Run the checkpointer."""
        async with _running(run_checkpointer(CheckpointerSettings(kafka=self._kafka, store=self._store), self.log)):
            yield

    def facts(self, attempt: int) -> list[e.Fact]:
        """Facts of an attempt."""
        stream = attempt_stream(self.run_id, attempt)
        commits = [decode_commit(record.value) for record in self.log.records(ATTEMPTS)]
        return [fact for c in commits if c.stream == stream and c.first_seq for fact in c.facts]

    def names(self, attempt: int) -> list[str]:
        """Names of an attempt's facts."""
        return [type(fact).__name__ for fact in self.facts(attempt)]

    def requests(self, kind: type[F]) -> list[F]:
        """Requests of this kind that were sent."""
        bodies = [decode_request(record.value).body for record in self.log.records(COMMANDS)]
        return [body for body in bodies if isinstance(body, kind)]

    def steps(self, attempt: int) -> list[int]:
        """Steps of rank 0 that telemetry has, in the order of sending."""
        batches = [decode_telemetry(record.value) for record in self.log.records(TELEMETRY)]
        return [item.step for b in batches if b.rank == 0 and b.attempt == attempt for item in b.steps]

    def committed(self) -> list[int]:
        """Steps of the checkpoints that can be restored, oldest first."""
        run_log = CommitLog(open_store(self._store.url), self.run_id, writer="test", now_ms=lambda: 1)
        return [commit.commit.step for commit in reversed(run_log.refresh().restorable)]

    async def fact(self, kind: type[F], attempt: int) -> F:
        """The attempt's first fact of this kind, once it is there."""
        return (await self.until(lambda: [f for f in self.facts(attempt) if isinstance(f, kind)]))[0]

    async def until(self, look: Callable[[], F]) -> F:
        """What a look gives, once it is true."""
        async with asyncio.timeout(LIMIT_S):
            while not (seen := look()):
                await asyncio.sleep(0.02)
            return seen


@asynccontextmanager
async def _running(work) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        assert not task.done(), task
        await cancel(task)
