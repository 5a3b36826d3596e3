"""A checkpointer's parts around an in-memory log and store."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from trackway_checkpointer.adapters.reading_position import ReadingPosition
from trackway_checkpointer.shell.caretaker import Caretaker, Pace
from trackway_checkpointer.shell.command_desk import CommandDesk
from trackway_checkpointer.shell.committer import Committer
from trackway_checkpointer.shell.publisher import Publisher
from trackway_checkpointer.shell.run_logs import RunLogs
from trackway_common.acceptance import Acceptance, Accepted, Duplicate
from trackway_common.clock import SystemClock
from trackway_common.codec import decode_commit
from trackway_common.commit import Commit
from trackway_common.event_log import EventLog, InMemoryEventLog
from trackway_common.events import CommitCheckpoint, SyncCommitLog
from trackway_common.ids import checkpoint_stream, uuid7
from trackway_common.object_store import InMemoryObjectStore, ObjectStore
from trackway_common.request_sender import RequestSender
from trackway_common.testing.checkpoints import CONFIG, DATASET, CheckpointedRun
from trackway_common.topics import CHECKPOINTS

from tests.support.tasks import cancel

PACE = Pace(grace_ms=0, sweep_s=0.05)


@dataclass
class World:
    """The log and the store that checkpointers share."""

    log: EventLog = field(default_factory=InMemoryEventLog)
    store: ObjectStore = field(default_factory=InMemoryObjectStore)

    def run(self, run_id: str = "run-1", **options) -> CheckpointedRun:
        made = CheckpointedRun(self.store, run_id, **options)
        made.now_ms = 1_800_000_000_000
        return made

    async def send(self, body: CommitCheckpoint | SyncCommitLog) -> None:
        await RequestSender(self.log, "agent", SystemClock(), uuid7).send(body, key=body.run_id)

    def records(self) -> list[Commit]:
        return [decode_commit(record.value) for record in self.log.records(CHECKPOINTS)]

    def accepted(self, run_id: str = "run-1") -> list[Commit]:
        """What readers take as facts of the run; anything but duplicates besides would be a bug."""
        acceptance, found = Acceptance(CHECKPOINTS), []
        for record in self.log.records(CHECKPOINTS):
            commit = decode_commit(record.value)
            verdict = acceptance.judge(record.partition, commit)
            assert isinstance(verdict, Accepted | Duplicate), verdict
            if isinstance(verdict, Accepted) and commit.stream == checkpoint_stream(run_id):
                found.append(commit)
        return found

    def names(self, run_id: str = "run-1") -> list[str]:
        return [type(fact).__name__ for commit in self.accepted(run_id) for fact in commit.facts]

    async def until_published(self, run: CheckpointedRun) -> None:
        """Wait until the topic says all that the commit log says."""
        await until(lambda: len(self.accepted(run.run_id)) == run.log().refresh().slot)


class Checkpointer:
    """One checkpointer's tasks, without its server."""

    def __init__(self, world: World, name: str = "a", pace: Pace = PACE) -> None:
        self.logs = RunLogs(world.store, f"checkpointer/{name}", SystemClock())
        self.publisher = Publisher(world.log, world.store)
        self.caretaker = Caretaker(self.logs, self.publisher, pace, SystemClock())
        self.position = ReadingPosition(world.store)
        committer = Committer(self.logs, self.publisher, self.caretaker)
        self.desk = CommandDesk(world.log, self.position, committer.carry_out, SystemClock())
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Checkpointer:
        self._tasks = [asyncio.ensure_future(self.publisher.follow()), asyncio.ensure_future(self.caretaker.run())]
        await self.caretaker.all_published.wait()
        self._tasks.append(asyncio.ensure_future(self.desk.run()))
        await self.desk.caught_up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await cancel(*self._tasks)

    def kill(self) -> None:
        for task in self._tasks:
            task.cancel()


async def until(condition, timeout_s: float = 10.0) -> None:
    async with asyncio.timeout(timeout_s):
        while not condition():
            await asyncio.sleep(0.005)


def command(run: CheckpointedRun, name, **changes) -> CommitCheckpoint:
    values = {
        "run_id": run.run_id,
        "epoch": name.epoch,
        "step": name.step,
        "nonce": name.nonce,
        "world_size": run.world_size,
        "config_digest": CONFIG,
        "dataset_digests": (DATASET,),
        "keep_last": 3,
    }
    return CommitCheckpoint(**(values | changes))


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def start(world):
    """Make a checkpointer of this world."""
    return lambda name="a", **options: Checkpointer(world, name, **options)


@pytest.fixture
def make_command():
    return command


@pytest.fixture
def wait_until():
    return until
