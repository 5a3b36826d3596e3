"""What the parts of one attempt's shell share: its stream, its way to the store, its outboxes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from trackway_common.clock import Clock
from trackway_common.errors import Unavailable
from trackway_common.events import EnvironmentObserved
from trackway_common.object_store import BlobStore

from trackway_trainer_agent.adapters.log_spool import LogSpool
from trackway_trainer_agent.domain.attempt import AttemptState
from trackway_trainer_agent.domain.commands import AttemptCommand, ReportEnvironment
from trackway_trainer_agent.shell.attempt_writer import AttemptWriter
from trackway_trainer_agent.shell.commit_desk import CommitDesk
from trackway_trainer_agent.shell.plan import Assignment
from trackway_trainer_agent.shell.telemetry_outbox import TelemetryOutbox
from trackway_trainer_agent.shell.timing import Timing
from trackway_trainer_agent.worker.records import EnvironmentReported

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDesk:
    """Of one attempt."""

    assignment: Assignment
    writer: AttemptWriter
    blobs: BlobStore
    commits: CommitDesk
    outbox: TelemetryOutbox
    spool: LogSpool
    timing: Timing
    clock: Clock

    @property
    def state(self) -> AttemptState:
        """The attempt as read back from the log."""
        return self.writer.state

    async def execute(self, command: AttemptCommand, name: str) -> AttemptState:
        """Carry a command out, however long the log is away; raises as ``AttemptWriter.execute``."""
        return await self.writer.execute(command, name, retry_s=self.timing.retry_s)

    async def from_storage(self, action: Callable[[], T], what: str) -> T:
        """Result of an action that blocks on storage, however long storage is away."""
        while True:
            try:
                return await asyncio.to_thread(action)
            except Unavailable as error:
                log.info("waiting for storage", extra={"for": what, "stream": self.writer.stream, "error": str(error)})
                await self.clock.sleep(self.timing.retry_s)

    async def environment(self, rank: int, seen: EnvironmentReported) -> None:
        """Record what a rank's interpreter really holds."""
        if rank in self.state.environments:
            return
        report = await self.from_storage(lambda: self.blobs.put(seen.report_json.encode()), "environment report")
        observed = EnvironmentObserved(
            rank=rank,
            python_version=seen.python_version,
            torch_version=seen.torch_version,
            device=seen.device,
            host=seen.host,
            environment_digest=seen.environment_digest,
            differs_from_pinned=seen.environment_digest != self.assignment.spec.runtime.environment_digest,
            report_digest=report,
        )
        await self.execute(ReportEnvironment(observed=observed), f"environment/{rank}")
