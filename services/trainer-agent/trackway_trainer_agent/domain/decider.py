"""Which facts a command on an attempt makes happen; none when they happened before."""

from __future__ import annotations

from typing import assert_never

from trackway_common.decider import Decider
from trackway_common.errors import CommandRejected
from trackway_common.events import (
    AttemptRunning,
    AttemptStarted,
    AttemptStarting,
    AttemptStopping,
    CheckpointAbandoned,
    CheckpointStarted,
    Fact,
    ResumeTargetChosen,
)

from trackway_trainer_agent.domain.attempt import AttemptState, Phase, SavePhase, evolve, initial
from trackway_trainer_agent.domain.commands import (
    AbandonCheckpoint,
    AttemptCommand,
    BeginAttempt,
    ChooseResumeTarget,
    EndAttempt,
    RecordVerdict,
    ReportEnvironment,
    ReportFirstStep,
    StartAttempt,
    StartCheckpoint,
    StopAttempt,
)
from trackway_trainer_agent.domain.reclassify import newer


def decide(state: AttemptState, command: AttemptCommand) -> tuple[Fact, ...]:
    """Facts of the command.

    Raises:
        CommandRejected: the attempt is not where the command needs it.
    """
    match command:
        case BeginAttempt():
            return _begin(state, command)
        case ChooseResumeTarget():
            return _choose(state, command)
        case StartAttempt():
            return _start(state, command)
        case ReportEnvironment():
            return _environment(state, command)
        case ReportFirstStep():
            return _first_step(state, command)
        case StartCheckpoint():
            return _start_checkpoint(state, command)
        case AbandonCheckpoint():
            return _abandon(state, command)
        case StopAttempt():
            return _stop(state, command)
        case EndAttempt():
            return _end(state, command)
        case RecordVerdict():
            return _record_verdict(state, command)
        case _ as never:
            assert_never(never)


DECIDER: Decider[AttemptState, AttemptCommand] = Decider(initial=initial, decide=decide, evolve=evolve)


def _begin(state: AttemptState, command: BeginAttempt) -> tuple[Fact, ...]:
    if state.phase is not Phase.PLACED:
        return ()
    return (
        AttemptStarting(
            run_id=command.run_id,
            attempt=command.attempt,
            epoch=command.epoch,
            agent_id=command.agent_id,
            starting_at=command.at,
        ),
    )


def _choose(state: AttemptState, command: ChooseResumeTarget) -> tuple[Fact, ...]:
    _refuse_unless_live(state, "choose a resume target")
    if state.resume_chosen:
        return ()
    chosen = ResumeTargetChosen(checkpoint=command.checkpoint, passed_over=command.passed_over, chosen_at=command.at)
    return (chosen,)


def _start(state: AttemptState, command: StartAttempt) -> tuple[Fact, ...]:
    _refuse_unless_live(state, "start ranks")
    if state.started_at is not None:
        return ()
    if not state.resume_chosen:
        raise CommandRejected(f"{state.stream} has no resume target: its fence may not be durable", reason="NO_FENCE")
    started = AttemptStarted(
        cluster_id=command.cluster_id,
        world_size=len(command.ranks),
        ranks=command.ranks,
        started_at=command.at,
    )
    return (started,)


def _environment(state: AttemptState, command: ReportEnvironment) -> tuple[Fact, ...]:
    _refuse_before_begin(state, "report an environment")
    if state.phase is Phase.ENDED or command.observed.rank in state.environments:
        return ()
    return (command.observed,)


def _first_step(state: AttemptState, command: ReportFirstStep) -> tuple[Fact, ...]:
    _refuse_unless_live(state, "report a step")
    if state.first_step is not None:
        return ()
    return (AttemptRunning(first_step=command.step, first_step_at=command.at),)


def _start_checkpoint(state: AttemptState, command: StartCheckpoint) -> tuple[Fact, ...]:
    if command.nonce in state.saves:
        return ()
    _refuse_unless_live(state, "start a checkpoint")
    started = CheckpointStarted(
        step=command.step,
        epoch=state.epoch,
        nonce=command.nonce,
        size_bytes=command.size_bytes,
        blocked_seconds=command.blocked_seconds,
        started_at=command.at,
        phases=command.phases,
    )
    return (started,)


def _abandon(state: AttemptState, command: AbandonCheckpoint) -> tuple[Fact, ...]:
    """Also after the end: a capture outlives its trainer, and the next attempt waits for what becomes of it."""
    _refuse_before_begin(state, "abandon a checkpoint")
    if state.saves.get(command.nonce) is SavePhase.ABANDONED:
        return ()
    abandoned = CheckpointAbandoned(
        step=command.step, epoch=state.epoch, nonce=command.nonce, why=command.why, abandoned_at=command.at
    )
    return (abandoned,)


def _stop(state: AttemptState, command: StopAttempt) -> tuple[Fact, ...]:
    _refuse_before_begin(state, "stop")
    if state.phase in {Phase.STOPPING, Phase.ENDED}:
        return ()
    return (AttemptStopping(why=command.why, stopping_at=command.at),)


def _end(state: AttemptState, command: EndAttempt) -> tuple[Fact, ...]:
    _refuse_before_begin(state, "end")
    return () if state.phase is Phase.ENDED else (command.receipt,)


def _record_verdict(state: AttemptState, command: RecordVerdict) -> tuple[Fact, ...]:
    """Only another result of a newer classifier is worth a fact."""
    verdict, before = command.verdict, state.reclassified or state.ended
    if before is None:
        raise CommandRejected(f"{state.stream} has not ended: there is no verdict to revise", reason="NOT_ENDED")
    same = (before.reason, before.blamed_rank, before.blamed_node) == (
        verdict.reason,
        verdict.blamed_rank,
        verdict.blamed_node,
    )
    return () if same or not newer(verdict.classifier_version, before.classifier_version) else (verdict,)


def _refuse_before_begin(state: AttemptState, what: str) -> None:
    if state.phase is Phase.PLACED:
        raise CommandRejected(f"{state.stream} can't {what}: it was not begun", reason="NOT_BEGUN")


def _refuse_unless_live(state: AttemptState, what: str) -> None:
    _refuse_before_begin(state, what)
    if state.phase is Phase.ENDED:
        raise CommandRejected(f"{state.stream} can't {what}: it has ended", reason="ENDED")
