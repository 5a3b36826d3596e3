"""Puts one attempt's parts together."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.clock import Clock
from trackway_common.commit import CommandContext
from trackway_common.event_log import EventLog
from trackway_common.ids import attempt_stream
from trackway_common.object_store import BlobStore, ObjectStore
from trackway_common.request_sender import RequestSender

from trackway_trainer_agent.adapters.log_spool import LogSpools
from trackway_trainer_agent.gangs import Gangs
from trackway_trainer_agent.shell.attempt_desk import AttemptDesk
from trackway_trainer_agent.shell.attempt_task import AttemptTask
from trackway_trainer_agent.shell.attempt_writer import AttemptWriter, Claims, Owner
from trackway_trainer_agent.shell.cluster_pulse import ClusterPulse
from trackway_trainer_agent.shell.commit_desk import CommitDesk
from trackway_trainer_agent.shell.plan import Assignment
from trackway_trainer_agent.shell.telemetry_outbox import TelemetryOutbox
from trackway_trainer_agent.shell.timing import Timing
from trackway_trainer_agent.shell.warm_gangs import WarmGangs


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempts:
    """Everything that attempts share."""

    event_log: EventLog
    owner: Owner
    claims: Claims
    writer_id: str
    agent_id: str
    gangs: Gangs
    warm: WarmGangs
    pulse: ClusterPulse
    sender: RequestSender
    store: ObjectStore
    store_url: str
    spools: LogSpools
    timing: Timing
    clock: Clock

    def task(self, assignment: Assignment) -> AttemptTask:
        """The task that runs this attempt."""
        return AttemptTask(
            desk=self._desk(assignment),
            owner=self.owner,
            gangs=self.gangs,
            warm=self.warm,
            pulse=self.pulse,
            commit_log=self._commit_log(assignment),
            sender=self.sender,
            store_url=self.store_url,
            agent_id=self.agent_id,
        )

    def _desk(self, assignment: Assignment) -> AttemptDesk:
        return AttemptDesk(
            assignment=assignment,
            writer=self._writer(assignment),
            blobs=BlobStore(self.store),
            commits=CommitDesk(self._commit_log(assignment), self.sender, assignment, self.clock),
            outbox=TelemetryOutbox(
                self.event_log,
                run_id=assignment.run_id,
                attempt=assignment.attempt,
                epoch=assignment.placed.epoch,
                clock=self.clock,
            ),
            spool=self.spools.of(assignment.run_id, assignment.attempt),
            timing=self.timing,
            clock=self.clock,
        )

    def _writer(self, assignment: Assignment) -> AttemptWriter:
        return AttemptWriter(
            owner=self.owner,
            claims=self.claims,
            stream=attempt_stream(assignment.run_id, assignment.attempt),
            epoch=assignment.placed.epoch,
            context=CommandContext(
                command_id="",
                actor=self.agent_id,
                causation_id=assignment.causation_id,
                correlation_id=assignment.run_id,
                traceparent=assignment.traceparent,
            ),
            clock=self.clock,
        )

    def _commit_log(self, assignment: Assignment) -> CommitLog:
        """One per user of it: a commit log is not for two threads at once."""
        return CommitLog(self.store, assignment.run_id, writer=self.writer_id, now_ms=self._now_ms)

    def _now_ms(self) -> int:
        return int(self.clock.now().timestamp() * 1000)
