"""One attempt from its placement to its receipt, and until nothing of its gang is left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.deadlines import deadline_of
from trackway_common.errors import Fenced, TrackwayError, Unavailable
from trackway_common.events import CheckpointRef, TerminationReason
from trackway_common.ids import attempt_stream
from trackway_common.request_sender import RequestSender
from trackway_common.telemetry import span

from trackway_trainer_agent.domain.attempt import Phase
from trackway_trainer_agent.domain.bounding import bounded
from trackway_trainer_agent.domain.classify import Classification, classify
from trackway_trainer_agent.domain.commands import BeginAttempt, EndAttempt, StopAttempt
from trackway_trainer_agent.domain.observations import LaunchProblem, LaunchStage, Observation, StopOrdered
from trackway_trainer_agent.domain.orders import StopOrder
from trackway_trainer_agent.gangs import Gangs
from trackway_trainer_agent.shell.attempt_desk import AttemptDesk
from trackway_trainer_agent.shell.attempt_writer import Owner
from trackway_trainer_agent.shell.bring_up import Granted, LaunchFailed, found, place, remove
from trackway_trainer_agent.shell.cluster_pulse import ClusterPulse
from trackway_trainer_agent.shell.fencing import choose_target, resolve_captures
from trackway_trainer_agent.shell.keeping import keep
from trackway_trainer_agent.shell.leftovers import clear_leftovers
from trackway_trainer_agent.shell.limits import stop_after_wall_time, stop_at_deadline
from trackway_trainer_agent.shell.live_gang import LiveGang
from trackway_trainer_agent.shell.plan import gang_request
from trackway_trainer_agent.shell.receipt import receipt
from trackway_trainer_agent.shell.testimony import Testimony
from trackway_trainer_agent.shell.warm_gangs import Kept, WarmGangs, worth_keeping

log = logging.getLogger(__name__)

T = TypeVar("T")


class _Stopped(Exception):
    """The attempt is to end before its gang was placed."""

    def __init__(self, intent: StopOrdered) -> None:
        super().__init__(intent.why)
        self.intent = intent


class AttemptTask:
    """Runs one attempt; cancelling it leaves the gang as it is."""

    def __init__(
        self,
        *,
        desk: AttemptDesk,
        owner: Owner,
        gangs: Gangs,
        warm: WarmGangs,
        pulse: ClusterPulse,
        commit_log: CommitLog,
        sender: RequestSender,
        store_url: str,
        agent_id: str,
    ) -> None:
        self.desk = desk
        self._owner = owner
        self._gangs = gangs
        self._warm = warm
        self._pulse = pulse
        self._commit_log = commit_log
        self._sender = sender
        self._store_url = store_url
        self._agent_id = agent_id
        self._order: StopOrder | None = None
        self._ordered = asyncio.Event()
        self.live: LiveGang | None = None
        """The gang while there is one."""

    def stop(self, order: StopOrder) -> None:
        """Have the attempt end for this reason; the first order counts."""
        self._order = self._order or order
        self._ordered.set()

    async def run(self) -> None:
        """Bring the attempt to its end, from wherever it stands."""
        try:
            async with asyncio.TaskGroup() as tasks:
                guard = tasks.create_task(self.desk.writer.until_taken_over(), name="guard")
                deadline = tasks.create_task(self._end_at_deadline(), name="deadline")
                with span("attempt", traceparent=self.desk.assignment.traceparent, stream=self.desk.writer.stream):
                    await self._run()
                guard.cancel()
                deadline.cancel()
        except* Fenced as lost:
            log.warning("attempt taken over", extra={"stream": self.desk.writer.stream, "why": str(lost.exceptions[0])})
        except* Exception:
            # Top of this attempt's task: the others go on, and this one gets a reason that calls an operator.
            log.exception("attempt failed in the agent", extra={"stream": self.desk.writer.stream})
            await self._give_up()

    async def _run(self) -> None:
        await self.desk.writer.claim(self.desk.timing.retry_s)
        if self.desk.state.phase is Phase.ENDED:
            await clear_leftovers(self.desk, self._gangs, self._warm, self._pulse, fenced_off=self._fenced_off())
            return
        await self._begin()
        try:
            granted = found(self.desk)
            if granted is None:
                granted = await self._unless_stopped(self._prepare())
        except LaunchFailed as failed:
            await self._end([failed.problem], Testimony(), None, ())
        except _Stopped as stopped:
            await self._end([stopped.intent], Testimony(), None, ())
            await self._remove_gang()
        else:
            await self._attend(granted)

    async def _begin(self) -> None:
        assignment = self.desk.assignment
        command = BeginAttempt(
            run_id=assignment.run_id,
            attempt=assignment.attempt,
            epoch=assignment.placed.epoch,
            agent_id=self._agent_id,
            at=self.desk.clock.now(),
        )
        await self.desk.execute(command, "begun")

    async def _prepare(self) -> Granted:
        await resolve_captures(self.desk, self._owner)
        await choose_target(self.desk, self._commit_log, self._sender)
        return await place(self.desk, self._gangs, self._warm, self._pulse, self._store_url)

    def _fenced_off(self) -> bool:
        """The next attempt's fence is up: what this one captured can't be committed any more."""
        assignment = self.desk.assignment
        following = self._owner.state(attempt_stream(assignment.run_id, assignment.attempt + 1))
        return following is not None and following.resume_chosen

    async def _attend(self, granted: Granted) -> None:
        desk = self.desk
        self.live = live = LiveGang(desk, self._gangs, self._pulse, granted)
        async with asyncio.TaskGroup() as tasks:
            helpers = (
                tasks.create_task(desk.outbox.run(desk.timing.telemetry_every_s), name="telemetry"),
                tasks.create_task(desk.commits.run(desk.timing.retry_s), name="commit requests"),
                tasks.create_task(self._pass_on_stop(live), name="stop order"),
                tasks.create_task(live.end_hang(), name="hang watch"),
                tasks.create_task(self._end_at_wall_time(granted.at), name="wall time"),
            )
            live.begin(tasks)
            seen = await live.observations()
            saves = await live.open_saves(desk.timing.saves_before_end_s)
            with self._warm.offering(desk.assignment.run_id):
                verdict = await self._end(seen, live.testimony, granted.at, saves)
                await live.settle()
                await self._leave(live, granted, verdict)
            for helper in helpers:
                helper.cancel()
        self.live = None

    async def _leave(self, live: LiveGang, granted: Granted, verdict: Classification) -> None:
        """Leave the gang to the next attempt, or give it back."""
        request = gang_request(self.desk.assignment, self.desk.timing.placement_wait_s)
        kept = Kept(request=replace(request, name=granted.watched.gang), cluster_id=granted.watched.cluster_id)
        if live.idle and worth_keeping(verdict) and self._order is None and await self._warm.was_taken(kept):
            log.info("gang left to the next attempt", extra={"gang": str(granted.watched.gang)})
        else:
            self._warm.withdraw(request.name.run_id)
            await remove(self.desk, self._gangs, self._warm, granted.watched.gang)
            log.info("gang removed", extra={"gang": str(granted.watched.gang)})

    async def _end_at_wall_time(self, granted_at: datetime) -> None:
        limits = self.desk.assignment.spec.limits
        if limits is not None and limits.wall_time_s is not None:
            await stop_after_wall_time(granted_at, limits.wall_time_s, self.desk.clock, self.stop)

    async def _end_at_deadline(self) -> None:
        assignment = self.desk.assignment
        deadline = deadline_of(assignment.spec.limits, assignment.submitted_at)
        if deadline is not None:
            await stop_at_deadline(deadline, self.desk.clock, self.stop)

    async def _pass_on_stop(self, live: LiveGang) -> None:
        await self._ordered.wait()
        order = self._order
        assert order is not None
        await self.desk.execute(StopAttempt(why=order.why, at=self.desk.clock.now()), "stopping")
        live.stop(order)

    async def _end(
        self, seen: Sequence[Observation], told: Testimony, granted_at: datetime | None, saves: tuple[str, ...]
    ) -> Classification:
        world_size = self.desk.assignment.world_size
        seen = [bounded(one) for one in seen]
        verdict = classify(world_size, seen)
        await self._flush_telemetry()
        closed = receipt(
            self.desk.assignment,
            self.desk.state,
            told,
            verdict,
            granted_at=granted_at,
            ended_at=self.desk.clock.now(),
            captures_in_flight=saves,
            last_committed=await self._last_committed(),
            kept=await keep(self.desk.blobs, world_size, seen),
        )
        await self.desk.execute(EndAttempt(receipt=closed), "ended")
        self.desk.spool.close()
        extra = {"stream": self.desk.writer.stream, "reason": verdict.reason.value, "cause": verdict.cause}
        log.info("attempt ended", extra=extra)
        return verdict

    async def _flush_telemetry(self) -> None:
        """What was measured before the end is better sent before it; an outage of the topic delays nothing."""
        try:
            await self.desk.outbox.flush()
        except Unavailable as error:
            log.info("telemetry waits", extra={"error": str(error)})

    async def _last_committed(self) -> CheckpointRef | None:
        try:
            return (await self.desk.commits.committed()).newest
        except Unavailable as error:
            log.info("commit log not read", extra={"error": str(error)})
            return None

    async def _unless_stopped(self, work: Coroutine[None, None, T]) -> T:
        task = asyncio.create_task(work)
        watching = asyncio.create_task(self._cancel_when_ordered(task))
        try:
            return await task
        except asyncio.CancelledError:
            if self._order is None:
                raise
            at_ms = self._now_ms()
            raise _Stopped(StopOrdered(reason=self._order.reason, why=self._order.why, at_ms=at_ms)) from None
        finally:
            watching.cancel()
            task.cancel()

    async def _cancel_when_ordered(self, task: asyncio.Task[T]) -> None:
        await self._ordered.wait()
        task.cancel()

    async def _remove_gang(self) -> None:
        own = self.desk.assignment.gang
        for gang in {own, self._warm.taken_by(own.run_id) or own}:
            await remove(self.desk, self._gangs, self._warm, gang)

    async def _give_up(self) -> None:
        problem = LaunchProblem(
            stage=LaunchStage.PLAN,
            message="the agent failed at this attempt; its log has the traceback",
            at_ms=self._now_ms(),
            reason=TerminationReason.PLATFORM_ERROR,
        )
        told = self.live.testimony if self.live is not None else Testimony()
        try:
            await self._end_after(problem, told)
            await self._remove_gang()
        except TrackwayError as error:
            log.error("attempt left without a receipt", extra={"stream": self.desk.writer.stream, "why": str(error)})
        except Exception:
            # Still the top of this attempt's task.
            log.exception("attempt left without a receipt", extra={"stream": self.desk.writer.stream})

    async def _end_after(self, problem: LaunchProblem, told: Testimony) -> None:
        started_at = self.desk.state.started_at
        try:
            await self._end([problem, *told.observations], told, started_at, ())
        except TrackwayError:
            raise
        except Exception:
            # What the ranks told may be what the agent failed at: it would fail again, also once it is restarted.
            log.exception("attempt judged without what was seen", extra={"stream": self.desk.writer.stream})
            await self._end([problem], Testimony(), started_at, ())

    def _now_ms(self) -> int:
        return int(self.desk.clock.now().timestamp() * 1000)
