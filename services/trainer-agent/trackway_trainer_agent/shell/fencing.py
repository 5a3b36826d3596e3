"""Before any byte is written: captures of the attempt before, this attempt's fence, its resume target."""

from __future__ import annotations

import logging

from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.resume import ResumeTarget, choose_resume_target, raise_fence
from trackway_common.errors import CorruptLog, Fenced, Unavailable
from trackway_common.events import Authority, CausalRole, Evidence, SyncCommitLog, TerminationReason
from trackway_common.ids import attempt_stream
from trackway_common.request_sender import RequestSender

from trackway_trainer_agent.domain.attempt import SavePhase, initial
from trackway_trainer_agent.domain.commands import ChooseResumeTarget
from trackway_trainer_agent.domain.observations import LaunchProblem, LaunchStage
from trackway_trainer_agent.shell.attempt_desk import AttemptDesk
from trackway_trainer_agent.shell.attempt_writer import Owner
from trackway_trainer_agent.shell.bring_up import LaunchFailed
from trackway_trainer_agent.shell.plan import checkpoint_path

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.1


async def resolve_captures(desk: AttemptDesk, owner: Owner) -> None:
    """Wait until each capture of the attempt before is committed or abandoned, or the deadline is past.

    The fence would keep the capture from being committed, and its steps would be lost for nothing.
    """
    waiting = frozenset(desk.assignment.placed.captures_in_flight)
    deadline = desk.clock.monotonic() + desk.timing.captures_deadline_s
    while waiting := await _unresolved(desk, owner, waiting):
        if desk.clock.monotonic() >= deadline:
            log.warning("captures given up", extra={"stream": desk.writer.stream, "nonces": sorted(waiting)})
            return
        await desk.clock.sleep(LOOK_EVERY_S)


async def choose_target(desk: AttemptDesk, commit_log: CommitLog, sender: RequestSender) -> None:
    """Raise the fence, then record the resume target that lies below it; once chosen, it stays.

    Raises:
        LaunchFailed: a later attempt owns the run's checkpoints, or the commit log can't be believed.
    """
    try:
        fence = await desk.from_storage(lambda: raise_fence(commit_log, desk.assignment.placed.epoch), "the fence")
        await _ask_to_publish(desk, sender)
        if desk.state.resume_chosen:
            return
        target = await desk.from_storage(lambda: choose_resume_target(commit_log, fence), "the resume target")
    except Fenced as error:
        raise LaunchFailed(_problem(desk, TerminationReason.AGENT_LOST, error)) from error
    except CorruptLog as error:
        raise LaunchFailed(_problem(desk, TerminationReason.CHECKPOINT_CORRUPT, error)) from error
    chosen = ChooseResumeTarget(checkpoint=target.checkpoint, passed_over=_passed_over(target), at=desk.clock.now())
    await desk.execute(chosen, "resume-target")
    named = checkpoint_path(target.checkpoint) if target.checkpoint is not None else None
    log.info("resume target chosen", extra={"stream": desk.writer.stream, "checkpoint": named})


async def _unresolved(desk: AttemptDesk, owner: Owner, nonces: frozenset[str]) -> frozenset[str]:
    if not nonces:
        return nonces
    assignment = desk.assignment
    before = attempt_stream(assignment.run_id, assignment.attempt - 1)
    saves = (owner.state(before) or initial(before)).saves
    left = frozenset(nonce for nonce in nonces if saves.get(nonce) is not SavePhase.ABANDONED)
    try:
        return left - (await desk.commits.committed()).nonces
    except Unavailable as error:
        log.info("commit log not read", extra={"error": str(error)})
        return left


async def _ask_to_publish(desk: AttemptDesk, sender: RequestSender) -> None:
    """The fence is an entry of the commit log; the checkpointer mirrors it when it hears of it."""
    run_id = desk.assignment.run_id
    while True:
        try:
            await sender.send(SyncCommitLog(run_id=run_id), key=run_id, traceparent=desk.assignment.traceparent)
        except Unavailable as error:
            log.info("waiting for the log", extra={"error": str(error)})
            await desk.clock.sleep(desk.timing.retry_s)
        else:
            return


def _problem(desk: AttemptDesk, reason: TerminationReason, error: Exception) -> LaunchProblem:
    at_ms = int(desk.clock.now().timestamp() * 1000)
    return LaunchProblem(stage=LaunchStage.RESUME, message=str(error), at_ms=at_ms, reason=reason)


def _passed_over(target: ResumeTarget) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(
            source=f"checkpoint {passed.path.removeprefix('data/')}",
            authority=Authority.HOST,
            role=CausalRole.UNKNOWN,
            excerpt=passed.why,
        )
        for passed in target.passed_over
    )
