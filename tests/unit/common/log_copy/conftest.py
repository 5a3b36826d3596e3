"""A log of several runs in memory, and copies of it."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from trackway.log_export import Exported, ExportOptions, export_log
from trackway_common.clock import ManualClock
from trackway_common.codec import commit_headers, encode_commit
from trackway_common.commit import Commit, Term
from trackway_common.errors import NotFound
from trackway_common.event_log import InMemoryEventLog
from trackway_common.events import CancelRequested
from trackway_common.ids import run_stream
from trackway_common.log_copy.manifest import Scope
from trackway_common.partitioner import partition_of
from trackway_common.testing.run_facts import START, RunFacts, append_commits, run_spec
from trackway_common.testing.run_steps import placed, started, submitted
from trackway_common.testing.run_stories import killed_and_resumed
from trackway_common.topics import FACT_PARTITIONS, RUNS

KILLED = "0199f3a1-7c2e-7d44-9b1a-3f6c2e8a9d01"
RUNNING = "0199f3a1-7c2e-7d44-9b1a-3f6c2e8a9d02"
QUEUED = "0199f3b1-7c2e-7d44-9b1a-3f6c2e8a9d03"
OTHER_PROJECT = "0199f3c1-7c2e-7d44-9b1a-3f6c2e8a9d04"
SPEC = b'{"project":"other"}'
SPEC_DIGEST = "sha256:" + hashlib.sha256(SPEC).hexdigest()
NOW = START + timedelta(hours=1)


@dataclass
class World:
    """A log, and what a store holds."""

    log: InMemoryEventLog
    commits: dict[str, list[Commit]]
    blobs: dict[str, bytes] = field(default_factory=dict)

    def export(self, folder: Path, scope: Scope | None = None, **limits: int) -> Exported:
        def blob(digest: str) -> bytes:
            if digest not in self.blobs:
                raise NotFound(digest)
            return self.blobs[digest]

        options = ExportOptions(scope=scope or Scope(), **limits)
        return export_log(lambda: self.log, folder, options, blob=blob, clock=ManualClock(NOW))


@pytest.fixture
def world() -> World:
    """Four runs, one fenced-off writer's commit, one record that is no commit."""
    runs = {
        KILLED: killed_and_resumed(KILLED),
        RUNNING: started(placed(submitted(RunFacts(RUNNING, START)), 1), 1),
        QUEUED: submitted(RunFacts(QUEUED, START + timedelta(minutes=5))),
        OTHER_PROJECT: submitted(RunFacts(OTHER_PROJECT, START), run_spec(project="other", spec_digest=SPEC_DIGEST)),
    }
    return asyncio.run(_filled({run_id: facts.commits for run_id, facts in runs.items()}))


@pytest.fixture
def copied(world: World, tmp_path: Path) -> Callable[[], Path]:
    """Makes a copy of everything."""

    def make() -> Path:
        world.export(tmp_path / "log")
        return tmp_path / "log"

    return make


async def _filled(runs: dict[str, list[Commit]]) -> World:
    log = InMemoryEventLog()
    claimed: set[str] = set()
    for run_id, commits in runs.items():
        # One scheduler owns a partition: a second run in it claims nothing anew.
        own = [c for c in commits if not (c.stream.startswith("partitions/") and c.stream in claimed)]
        claimed |= {c.stream for c in own if c.stream.startswith("partitions/")}
        await append_commits(log, own, run_id=run_id)
    partition = partition_of(KILLED.encode(), FACT_PARTITIONS)
    zombie = RunFacts(KILLED)
    zombie.claim(run_stream(KILLED), run_stream(KILLED), Term(0, 0))
    zombie.commit(run_stream(KILLED), CancelRequested(reason="late", actor="zombie", requested_at=START))
    late = zombie.commits[-1]
    await log.append(RUNS, partition, KILLED.encode(), encode_commit(late), commit_headers(late))
    await log.append(RUNS, partition, KILLED.encode(), b"no commit", (("made-by", b"a mistake"),))
    return World(log, runs)
