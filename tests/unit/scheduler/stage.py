"""A scheduler on an in-memory log, with the rest of the world played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from trackway_common.clock import ManualClock
from trackway_common.codec import commit_headers, decode_commit, encode_commit
from trackway_common.commit import CommandContext, Commit, Term
from trackway_common.decider import Decider
from trackway_common.event_log import InMemoryEventLog
from trackway_common.events import AgentHeartbeat, AttemptEnded, CheckpointCommitted, Fact, TerminationReason
from trackway_common.ids import attempt_stream, checkpoint_stream, evaluation_stream, root_key, uuid7
from trackway_common.object_store import BlobStore, InMemoryObjectStore
from trackway_common.partitioner import partition_of
from trackway_common.request_sender import RequestSender
from trackway_common.stream_owner import StreamOwner, Writer
from trackway_common.topics import ATTEMPTS, CHECKPOINTS, EVALUATIONS, FACT_PARTITIONS, RUNS
from trackway_proto.v1 import run_service_pb2 as pb
from trackway_scheduler.adapters.catalogue_file import parse_catalogue
from trackway_scheduler.domain.leases import LeaseTerms, Probe
from trackway_scheduler.entrypoints.dataset_service import DatasetServicer
from trackway_scheduler.entrypoints.directory_service import DirectoryServicer
from trackway_scheduler.entrypoints.pool_service import PoolServicer
from trackway_scheduler.entrypoints.run_service import RunServicer
from trackway_scheduler.shell.draws import Draws
from trackway_scheduler.shell.leadership import LeadershipTerms
from trackway_scheduler.shell.opening import Opening
from trackway_scheduler.shell.scheduler import Makings, Scheduler

from tests.support.tasks import cancel

CATALOGUE = b"""
apiVersion: trackway/v1
kind: ComputeCatalogue
pools: [{name: local}]
classes:
  - {name: small, pool: local, accelerator_kind: cpu, cpus_per_rank: 1, max_ranks: 4,
     price_per_accelerator_hour: {amount: 0.02}}
"""
SPEC = """
apiVersion: trackway/v1
kind: TrainingRun
project: demo
model_family: reasoning
entrypoint: {function: "m.train:main"}
compute: small
topology: {world_size: 2}
hyperparameters: {lr: 1e-3}
"""
PACK = b"""
apiVersion: trackway/v1
kind: EvaluationPack
name: tiny
evaluator: {adapter: builtin}
tasks:
  - {id: accuracy, version: "1", kind: classification, dataset: digits, split: test, data: "d.data:samples"}
"""
ENVIRONMENT = "sha256:" + "e" * 64
PATIENCE_S = 20.0


@dataclass
class Caller:
    """What a servicer asks of its context."""

    name: str = "ada"

    def auth_context(self) -> dict:
        return {}

    def invocation_metadata(self) -> tuple:
        return (("trackway-actor", self.name),)


@dataclass
class World:
    """The log, the store and the clock that several schedulers share, and the other services' hands."""

    clock: ManualClock = field(default_factory=ManualClock)
    reachable: bool = False

    def __post_init__(self) -> None:
        self.log = InMemoryEventLog(self.clock)
        self.blobs = BlobStore(InMemoryObjectStore())
        self.code = self.blobs.put(b"code")
        self.sender = RequestSender(self.log, "test", self.clock, uuid7)
        self.agent = AgentHeartbeat(
            agent_id="agent-1", endpoint="127.0.0.1:9", pool="local", cluster_id="c-1", cpus=4.0,
            memory_bytes=8 << 30, environment_digest=ENVIRONMENT, python_version="3.11.7",
        )  # fmt: skip
        self.agent_beats = True

    @asynccontextmanager
    async def running(self):
        """Let time pass, a twentieth of a second a turn, and the agent beat once a second."""
        task = asyncio.create_task(self._live())
        try:
            yield self
        finally:
            task.cancel()

    async def _live(self) -> None:
        turn = 0
        while True:
            if turn % 20 == 0 and self.agent_beats:
                await self.sender.send(self.agent, key=self.agent.agent_id)
            turn += 1
            self.clock.advance(0.05)
            # A turn of real time, so that threads of the object store come to an end.
            await asyncio.sleep(0.0005)

    async def write(self, topic: str, stream: str, *facts: Fact) -> None:
        """Append facts as their owner would."""
        decider = Decider(initial=lambda stream: None, decide=lambda state, facts: facts, evolve=lambda state, _: None)
        owner = StreamOwner(
            event_log=self.log, topic=topic, decider=decider, writer=Writer(writer_id=uuid7(), endpoint="x"),
            clock=self.clock, ids=uuid7,
        )  # fmt: skip
        tail = asyncio.create_task(owner.run())
        try:
            await owner.claim(stream, epoch=owner.owner_term(stream).epoch)
            await owner.execute(stream, facts, CommandContext(command_id=uuid7(), actor="test"))
        finally:
            tail.cancel()

    async def end_attempt(self, run_id: str, attempt: int, reason: TerminationReason, **fields) -> None:
        fact = AttemptEnded(
            run_id=run_id, attempt=attempt, reason=reason, cause="the test says so",
            started_at=self.clock.now(), ended_at=self.clock.now(), **fields,
        )  # fmt: skip
        await self.write(ATTEMPTS, attempt_stream(run_id, attempt), fact)

    async def end_evaluation(self, run_id: str, fact: Fact) -> None:
        await self.write(EVALUATIONS, evaluation_stream(run_id), fact)

    async def commit_checkpoint(self, run_id: str, slot: int, fact: CheckpointCommitted) -> None:
        stream = checkpoint_stream(run_id)
        commit = Commit(
            commit_id=f"{run_id}-{slot}", stream=stream, first_seq=slot, term=Term(0, 0), writer_id="c",
            command_id="", causation_id="", correlation_id=run_id, tenant="", actor="c",
            occurred_at=self.clock.now(), traceparent="", facts=(fact,),
        )  # fmt: skip
        key = root_key(stream)
        partition = partition_of(key, FACT_PARTITIONS)
        await self.log.append(CHECKPOINTS, partition, key, encode_commit(commit), commit_headers(commit))

    def run_facts(self, run_id: str) -> list[str]:
        """Names of the facts in the run's own stream, rejected commits left out by hand of the caller."""
        return [type(fact).__name__ for commit in self.run_commits(run_id) for fact in commit.facts]

    def run_commits(self, run_id: str) -> list[Commit]:
        commits = (decode_commit(record.value) for record in self.log.records(RUNS))
        return [commit for commit in commits if commit.stream == f"runs/{run_id}"]


class Stage:
    """One scheduler process of the world."""

    def __init__(self, world: World, name: str = "one") -> None:
        self.world = world
        self.opening = Opening()
        self.active_changes: list[bool] = []
        self.probed: list[str] = []
        self.scheduler = Scheduler(
            Makings(
                event_log=world.log,
                blobs=world.blobs,
                catalogue=parse_catalogue(CATALOGUE, name="c.yaml"),
                clock=world.clock,
                ids=uuid7,
                draws=Draws(),
                prober=self._probe,
                lease_terms=LeaseTerms(probe_after_s=15, write_off_after_s=60),
                leadership_terms=LeadershipTerms(takeover_after_s=1.5),
                instance=name,
                endpoint=f"{name}:1",
                opening=self.opening,
                on_active=self._note_active,
            )
        )
        self.runs = RunServicer(self.opening)
        self.datasets = DatasetServicer(self.opening)
        self.pools = PoolServicer(self.opening)
        self.directory = DirectoryServicer(self.opening)
        self._task: asyncio.Task | None = None

    @asynccontextmanager
    async def up(self, *, wait_active: bool = True):
        self._task = asyncio.create_task(self.scheduler.run())
        try:
            if wait_active:
                await self.until(lambda: self.scheduler.is_active)
                await self.until(lambda: "local" in self.opening.parts.records.pools())
            yield self
        finally:
            await self.kill()

    async def kill(self) -> None:
        if self._task is not None:
            await cancel(self._task)
            self._task = None

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something holds; a failed scheduler ends the wait."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                if self._task is not None and self._task.done():
                    self._task.result()
                await asyncio.sleep(0.001)

    async def phase(self, run_id: str, phase: str) -> pb.Run:
        """Wait until the run is in that phase."""
        wanted = pb.Run.DESCRIPTOR.fields_by_name["phase"].enum_type.values_by_name[f"RUN_PHASE_{phase}"].number
        await self.until(lambda: self.state(run_id) is not None and self.state(run_id).phase == phase)
        run = await self.runs.GetRun(pb.GetRunRequest(name=run_id), Caller())
        assert run.phase == wanted
        return run

    def state(self, run_id: str):
        return self.opening.parts.records.run(run_id)

    async def submit(self, spec: str = SPEC, run_id: str | None = None, **fields) -> pb.Run:
        request = pb.SubmitRunRequest(
            request_id=run_id or uuid7(), config=spec.encode(), code_archive_digest=self.world.code, **fields
        )
        return await self.runs.SubmitRun(request, Caller())

    async def _note_active(self, active: bool) -> None:
        self.active_changes.append(active)

    async def _probe(self, endpoint: str) -> Probe:
        self.probed.append(endpoint)
        return Probe(endpoint=endpoint, reachable=self.world.reachable, detail="the test says so")


def other_agent(world: World, **changes) -> None:
    world.agent = replace(world.agent, **changes)


async def watch(stage: Stage, run_id: str, cursor: str = "") -> list[pb.WatchRunResponse]:
    """Everything that a watcher is told until the watch ends."""
    request = pb.WatchRunRequest(name=run_id, cursor=cursor)
    return [message async for message in stage.runs.WatchRun(request, Caller())]
