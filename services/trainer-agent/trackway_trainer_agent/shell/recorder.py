"""Turns what ranks report into facts, telemetry, logs and commit requests of one attempt."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime

from trackway_common.errors import CommandRejected
from trackway_common.events import RankHeartbeat, RankStarted

from trackway_trainer_agent.domain.commands import AbandonCheckpoint, ReportFirstStep, StartAttempt, StartCheckpoint
from trackway_trainer_agent.domain.observations import ClusterLost, NodeLeaving, Observation, RankLost
from trackway_trainer_agent.domain.saves import (
    Abandon,
    Announce,
    RankOver,
    RequestCommit,
    SaveBook,
    SaveEvent,
    SaveIntent,
    react,
)
from trackway_trainer_agent.shell.attempt_desk import AttemptDesk
from trackway_trainer_agent.shell.gang_watch import Watched
from trackway_trainer_agent.shell.hang_watch import HangWatch
from trackway_trainer_agent.shell.reading import (
    launch_problem,
    log_line,
    metric_values,
    part_captured,
    part_failed,
    part_persisted,
    phase_seconds,
    rank_exit,
    resource_sample,
    step_metrics,
)
from trackway_trainer_agent.shell.reflexes import Reflexes
from trackway_trainer_agent.shell.testimony import Testimony
from trackway_trainer_agent.worker import records
from trackway_trainer_agent.worker.records import DrainBatch, Numbered, RankPhase

log = logging.getLogger(__name__)


class Recorder:
    """Listens to the gang's watch. One rank's records are taken in order; several ranks' side by side."""

    def __init__(
        self, desk: AttemptDesk, watched: Watched, reflexes: Reflexes, hangs: HangWatch, granted_at: datetime
    ) -> None:
        self._desk = desk
        self._watched = watched
        self._reflexes = reflexes
        self._hangs = hangs
        self._granted_at = granted_at
        self._clock = desk.clock
        self._ordering = asyncio.Lock()
        self._beaten_at: dict[int, float] = {}
        self._heard: dict[int, asyncio.Event] = {rank: asyncio.Event() for rank in range(len(watched.hosts))}
        self.book = SaveBook(world_size=len(watched.hosts))
        self.testimony = Testimony()

    async def drained(self, rank: int, batch: DrainBatch) -> None:
        """Take in a rank's answer; the reflexes hear of its end before the log does."""
        for item in batch.records:
            self._notice_end(rank, item)
        self._hangs.note(rank, batch)
        await self._desk.outbox.room()
        for item in batch.records:
            await self._take(rank, item)
        self.testimony.last_steps[rank] = max(batch.last_step, self.testimony.last_steps.get(rank, 0))
        self.testimony.measured(phase_seconds(rank, batch.phases))
        self._beat(rank, batch)
        if batch.phase is RankPhase.ENDED and not batch.more:
            await self._saves(RankOver(rank=rank, why="its program and its saves are over"))

    async def rank_lost(self, seen: RankLost) -> None:
        """A rank's actor is dead."""
        self._hangs.over(seen.rank)
        self._observe(seen.rank, seen)
        self._reflexes.rank_ended(seen.rank, failed=True)
        await self._saves(RankOver(rank=seen.rank, why="its actor is dead"))

    async def node_leaving(self, seen: NodeLeaving) -> None:
        """Ranks go on until their node goes; why they end then is known already."""
        log.warning("node is being taken away", extra={"node": seen.node, "ranks": list(seen.ranks)})
        self.testimony.observations.append(seen)

    async def cluster_lost(self, seen: ClusterLost) -> None:
        """Every rank is dead."""
        self.testimony.observations.append(seen)
        for rank in range(self.book.world_size):
            self._heard[rank].set()
            self._reflexes.rank_ended(rank, failed=True)
            await self._saves(RankOver(rank=rank, why="the cluster is gone"))

    async def heard(self, ranks: Iterable[int]) -> None:
        """Wait until the ends of these ranks are in the testimony."""
        for rank in ranks:
            await self._heard[rank].wait()

    async def give_up_saves(self, why: str) -> None:
        """Nothing more will come from any rank."""
        for rank in range(self.book.world_size):
            await self._saves(RankOver(rank=rank, why=why))

    def _notice_end(self, rank: int, item: Numbered) -> None:
        match item.record:
            case records.TrainerExited() as seen:
                self._reflexes.rank_ended(rank, failed=seen.exit_code != 0)
            case records.LaunchFailed():
                self._reflexes.rank_ended(rank, failed=True)
            case _:
                pass

    async def _take(self, rank: int, item: Numbered) -> None:
        match item.record:
            case records.StepMetrics() | records.LogLine() | records.ResourceSample():
                self._measured(rank, item.number, item.record)
            case records.CheckpointCaptured() as seen:
                await self._saves(part_captured(rank, seen))
            case records.CheckpointPersisted() as seen:
                await self._saves(part_persisted(rank, seen))
            case records.CheckpointAbandoned() as seen:
                await self._saves(part_failed(rank, seen))
            case records.TrainerStarted() as seen:
                self.testimony.trainers[rank] = seen
                await self._advance()
            case records.FirstStepReported() as seen:
                self.testimony.took_step(seen.step, seen.at_ms)
                await self._advance()
            case records.EnvironmentReported() as seen:
                await self._desk.environment(rank, seen)
            case records.TrainerExited() as seen:
                self._ended(rank, seen)
            case records.LaunchFailed() as seen:
                self._observe(rank, launch_problem(rank, self._watched.hosts[rank], seen))

    def _observe(self, rank: int, seen: Observation) -> None:
        """A rank's end; nothing else that it may still say changes why the attempt ended."""
        self.testimony.observations.append(seen)
        self._heard[rank].set()

    def _ended(self, rank: int, seen: records.TrainerExited) -> None:
        self.testimony.ended(rank, seen)
        host = self._watched.hosts[rank]
        self._observe(rank, rank_exit(rank, host, seen))

    def _measured(self, rank: int, number: int, seen: records.Telemetry) -> None:
        match seen:
            case records.StepMetrics():
                self.testimony.last_metrics[rank] = metric_values(seen.values)
                self._desk.outbox.add(rank, step_metrics(number, seen))
            case records.LogLine():
                self._desk.spool.append(rank, log_line(number, seen))
                self._desk.outbox.add(rank, log_line(number, seen))
            case records.ResourceSample():
                self._desk.outbox.add(rank, resource_sample(number, seen))

    def _beat(self, rank: int, batch: DrainBatch) -> None:
        now_s = self._clock.monotonic()
        if now_s - self._beaten_at.get(rank, float("-inf")) < self._desk.timing.heartbeat_every_s:
            return
        self._beaten_at[rank] = now_s
        heartbeat = RankHeartbeat(at_ms=batch.at_ms, last_step=batch.last_step)
        self._desk.outbox.beat(rank, heartbeat, dropped_metrics=batch.dropped_metrics, dropped_logs=batch.dropped_logs)

    async def _advance(self) -> None:
        """Record the start once every program runs, and the first step after it."""
        async with self._ordering:
            state, told = self._desk.state, self.testimony
            if state.started_at is None and len(told.trainers) == self.book.world_size:
                ranks = tuple(self._started(rank) for rank in range(self.book.world_size))
                start = StartAttempt(cluster_id=self._watched.cluster_id, ranks=ranks, at=self._granted_at)
                state = await self._desk.execute(start, "started")
            if state.started_at is not None and state.first_step is None and told.first_step is not None:
                step, at_ms = told.first_step
                await self._desk.execute(ReportFirstStep(step=step, at=_moment(at_ms)), "first-step")

    def _started(self, rank: int) -> RankStarted:
        trainer = self.testimony.trainers[rank]
        return RankStarted(
            rank=rank,
            node=self._watched.hosts[rank],
            actor=self._watched.gang.actor(rank),
            trainer_pid=trainer.pid,
            device=trainer.device,
        )

    async def _saves(self, event: SaveEvent) -> None:
        async with self._ordering:
            self.book, intents = react(self.book, event)
            for intent in intents:
                try:
                    await self._perform(intent)
                except CommandRejected as error:
                    # A save that is told of only after the receipt; the commit log says what became of it.
                    log.info("save not recorded", extra={"nonce": intent.nonce, "why": str(error)})

    async def _perform(self, intent: SaveIntent) -> None:
        now = self._clock.now()
        match intent:
            case Announce():
                command = StartCheckpoint(
                    step=intent.step,
                    nonce=intent.nonce,
                    size_bytes=intent.size_bytes,
                    blocked_seconds=intent.blocked_seconds,
                    at=now,
                    phases=intent.phases,
                )
                await self._desk.execute(command, f"checkpoint/{intent.nonce}")
            case RequestCommit():
                self._desk.commits.ask(intent)
            case Abandon():
                abandon = AbandonCheckpoint(step=intent.step, nonce=intent.nonce, why=intent.why, at=now)
                await self._desk.execute(abandon, f"abandoned/{intent.nonce}")


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
