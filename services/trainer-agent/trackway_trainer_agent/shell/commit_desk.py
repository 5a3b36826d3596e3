"""Asks the checkpointer to commit what is complete, and looks into the commit log for what came of it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.layout import parse_path
from trackway_common.checkpoint.log_state import CommitState
from trackway_common.clock import Clock
from trackway_common.errors import Unavailable
from trackway_common.events import CheckpointRef, CommitCheckpoint, RunSpec
from trackway_common.request_sender import RequestSender

from trackway_trainer_agent.domain.saves import RequestCommit
from trackway_trainer_agent.shell.plan import Assignment
from trackway_trainer_agent.shell.reading import metric_values

log = logging.getLogger(__name__)

POLL_S = 0.2
PREDECESSOR_S = 5.0
"""How long a request waits for the commit before it, to name it as parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """What the commit log says now."""

    newest: CheckpointRef | None
    """Newest restorable commit."""
    nonces: frozenset[str]
    """Of everything that was ever committed."""


class CommitDesk:
    """Of one attempt; reads the run's commit log, never writes it."""

    def __init__(self, commit_log: CommitLog, sender: RequestSender, assignment: Assignment, clock: Clock) -> None:
        self._log = commit_log
        self._sender = sender
        self._assignment = assignment
        self._clock = clock
        self._reading = asyncio.Lock()
        self._asked: asyncio.Queue[RequestCommit] = asyncio.Queue()
        self._before: str | None = None

    def ask(self, request: RequestCommit) -> None:
        """Have the checkpoint committed; it may be asked for twice."""
        self._asked.put_nowait(request)

    async def run(self, retry_s: float) -> None:
        """Send what was asked, in order, for ever."""
        while True:
            request = await self._asked.get()
            while True:
                try:
                    await self._send(request)
                    break
                except Unavailable as error:
                    log.info("commit request waits", extra={"nonce": request.nonce, "error": str(error)})
                    await self._clock.sleep(retry_s)
            self._asked.task_done()

    async def committed(self) -> Committed:
        """Read the commit log; raises ``Unavailable`` when the store is away."""
        async with self._reading:
            state = await asyncio.to_thread(self._log.refresh)
        newest = next(iter(state.restorable), None)
        return Committed(
            newest=checkpoint_ref(self._assignment.run_id, newest) if newest is not None else None,
            nonces=frozenset(commit.commit.nonce for commit in state.commits.values()),
        )

    async def wait_committed(self, nonces: frozenset[str], limit_s: float) -> frozenset[str]:
        """Wait until these are committed, no longer than the limit; returns those that are not."""
        deadline = self._clock.monotonic() + limit_s
        missing = nonces
        while missing:
            try:
                missing = nonces - (await self.committed()).nonces
            except Unavailable as error:
                log.info("commit log not read", extra={"error": str(error)})
            if not missing or self._clock.monotonic() >= deadline:
                break
            await self._clock.sleep(POLL_S)
        return missing

    async def sent(self) -> None:
        """Wait until everything asked for was sent."""
        await self._asked.join()

    async def _send(self, request: RequestCommit) -> None:
        if self._before is not None:
            await self.wait_committed(frozenset({self._before}), PREDECESSOR_S)
        before = await self.committed()
        if request.nonce not in before.nonces:
            body = _command(self._assignment, request, before.newest)
            await self._sender.send(body, key=self._assignment.run_id, traceparent=self._assignment.traceparent)
        self._before = request.nonce


def checkpoint_ref(run_id: str, commit: CommitState) -> CheckpointRef:
    """A commit as facts name it."""
    name = parse_path(commit.commit.path)
    return CheckpointRef(
        run_id=run_id,
        step=name.step,
        epoch=name.epoch,
        nonce=name.nonce,
        manifest_digest=commit.commit.manifest_digest,
        slot=commit.slot,
    )


def _command(assignment: Assignment, request: RequestCommit, parent: CheckpointRef | None) -> CommitCheckpoint:
    spec: RunSpec = assignment.spec
    return CommitCheckpoint(
        run_id=assignment.run_id,
        epoch=assignment.placed.epoch,
        step=request.step,
        nonce=request.nonce,
        world_size=request.parts,
        config_digest=spec.config_digest,
        dataset_digests=tuple(dataset.manifest_digest for dataset in spec.datasets),
        keep_last=spec.topology.checkpoint.keep_last,
        parent=parent,
        metrics=metric_values(request.metrics),
    )
