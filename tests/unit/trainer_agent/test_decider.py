"""The attempt's decider: given facts, when a command, then facts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trackway_common.decider import fold
from trackway_common.errors import CommandRejected
from trackway_common.events import (
    AttemptEnded,
    AttemptRunning,
    AttemptStarted,
    AttemptStarting,
    AttemptStopping,
    CheckpointAbandoned,
    CheckpointRef,
    CheckpointStarted,
    EnvironmentObserved,
    RankStarted,
    ResumeTargetChosen,
    TerminationReason,
)
from trackway_trainer_agent.domain.attempt import Phase
from trackway_trainer_agent.domain.commands import (
    AbandonCheckpoint,
    BeginAttempt,
    ChooseResumeTarget,
    EndAttempt,
    ReportEnvironment,
    ReportFirstStep,
    StartAttempt,
    StartCheckpoint,
    StopAttempt,
)
from trackway_trainer_agent.domain.decider import DECIDER

AT = datetime(2026, 1, 1, tzinfo=UTC)
STREAM = "attempts/r/2"
TARGET = CheckpointRef(run_id="r", step=40, epoch=1, nonce="aaaa", manifest_digest="sha256:1", slot=3)
RANKS = (RankStarted(rank=0, node="n", trainer_pid=10), RankStarted(rank=1, node="n", trainer_pid=11))

begin = BeginAttempt(run_id="r", attempt=2, epoch=2, agent_id="agent-local", at=AT)
choose = ChooseResumeTarget(checkpoint=TARGET, passed_over=(), at=AT)
start = StartAttempt(cluster_id="c", ranks=RANKS, at=AT)
environment = ReportEnvironment(observed=EnvironmentObserved(rank=1, python_version="3.11"))
first_step = ReportFirstStep(step=41, at=AT)
save = StartCheckpoint(step=60, nonce="bbbb", size_bytes=9, blocked_seconds=0.1, at=AT)
abandon = AbandonCheckpoint(step=60, nonce="bbbb", why="rank 1 ended", at=AT)
stop = StopAttempt(why="cancelled", at=AT)
end = EndAttempt(
    receipt=AttemptEnded(run_id="r", attempt=2, reason=TerminationReason.COMPLETED, started_at=AT, ended_at=AT)
)

starting = AttemptStarting(run_id="r", attempt=2, epoch=2, agent_id="agent-local", starting_at=AT)
chosen = ResumeTargetChosen(checkpoint=TARGET, chosen_at=AT)
started = AttemptStarted(cluster_id="c", world_size=2, ranks=RANKS, started_at=AT)
running = AttemptRunning(first_step=41, first_step_at=AT)
save_started = CheckpointStarted(step=60, epoch=2, nonce="bbbb", size_bytes=9, blocked_seconds=0.1, started_at=AT)
abandoned = CheckpointAbandoned(step=60, epoch=2, nonce="bbbb", why="rank 1 ended", abandoned_at=AT)
stopping = AttemptStopping(why="cancelled", stopping_at=AT)
ENDED = (starting, chosen, started, end.receipt)
ALL_COMMANDS = (begin, choose, start, environment, first_step, save, abandon, stop, end)

HAPPENS = {
    "begin": ((), begin, (starting,)),
    "choose": ((starting,), choose, (chosen,)),
    "start": ((starting, chosen), start, (started,)),
    "environment": ((starting, chosen), environment, (environment.observed,)),
    "first step": ((starting, chosen, started), first_step, (running,)),
    "checkpoint": ((starting, chosen, started, running), save, (save_started,)),
    "abandon": ((starting, save_started), abandon, (abandoned,)),
    "abandon what never started": ((starting,), abandon, (abandoned,)),
    "abandon after the end": ((*ENDED,), abandon, (abandoned,)),
    "stop": ((starting, chosen, started, running), stop, (stopping,)),
    "stop before the start": ((starting,), stop, (stopping,)),
    "end": ((starting, chosen, started), end, (end.receipt,)),
    "end of what never started": ((starting,), end, (end.receipt,)),
}
REPEATED = {
    "begin": ((starting,), begin),
    "choose": ((starting, chosen), choose),
    "start": ((starting, chosen, started), start),
    "environment": ((starting, environment.observed), environment),
    "first step": ((starting, chosen, started, running), first_step),
    "checkpoint": ((starting, save_started), save),
    "checkpoint, ended since": ((starting, save_started, end.receipt), save),
    "abandon": ((starting, abandoned), abandon),
    "stop": ((starting, stopping), stop),
    "stop after the end": (ENDED, stop),
    "end": (ENDED, end),
    "environment after the end": (ENDED, environment),
}
REFUSED = {
    "choose before begin": ((), choose),
    "start before begin": ((), start),
    "start without a resume target": ((starting,), start),
    "stop before begin": ((), stop),
    "end before begin": ((), end),
    "choose after the end": (ENDED, choose),
    "start after the end": ((starting, chosen, end.receipt), start),
    "first step after the end": (ENDED, first_step),
    "checkpoint after the end": (ENDED, save),
}


@pytest.mark.parametrize("name", HAPPENS)
def test_command_makes_facts(name: str) -> None:
    given_facts, command, expected = HAPPENS[name]
    assert DECIDER.decide(fold(DECIDER, STREAM, given_facts), command) == expected


@pytest.mark.parametrize("name", REPEATED)
def test_command_again_makes_none(name: str) -> None:
    given_facts, command = REPEATED[name]
    assert DECIDER.decide(fold(DECIDER, STREAM, given_facts), command) == ()


@pytest.mark.parametrize("name", REFUSED)
def test_command_is_refused(name: str) -> None:
    given_facts, command = REFUSED[name]
    with pytest.raises(CommandRejected):
        DECIDER.decide(fold(DECIDER, STREAM, given_facts), command)


def test_phases_follow_the_facts() -> None:
    history = (starting, chosen, started, running, stopping, end.receipt)
    phases = [fold(DECIDER, STREAM, history[:length]).phase for length in range(len(history) + 1)]
    assert phases == [
        Phase.PLACED,
        *[Phase.STARTING] * 3,
        Phase.RUNNING,
        Phase.STOPPING,
        Phase.ENDED,
    ]
    state = fold(DECIDER, STREAM, history)
    assert (state.resume, state.ranks, state.first_step, state.ended) == (TARGET, RANKS, 41, end.receipt)


def test_a_step_reported_while_stopping_does_not_undo_the_stop() -> None:
    assert fold(DECIDER, STREAM, (starting, chosen, started, stopping, running)).phase is Phase.STOPPING


@settings(max_examples=300, deadline=None)
@given(commands=st.lists(st.sampled_from(ALL_COMMANDS), max_size=25))
def test_any_order_of_commands_keeps_the_stream_sound(commands) -> None:
    facts: list[object] = []
    for command in commands:
        state = fold(DECIDER, STREAM, facts)
        try:
            made = DECIDER.decide(state, command)
        except CommandRejected:
            continue
        facts += made
        again = fold(DECIDER, STREAM, facts)
        assert DECIDER.decide(again, command) == ()
    kinds = [type(fact).__name__ for fact in facts]
    assert all(kinds.count(kind) == 1 for kind in kinds)
    assert not kinds or kinds[0] == "AttemptStarting"
    if "AttemptEnded" in kinds:
        assert set(kinds[kinds.index("AttemptEnded") + 1 :]) <= {"CheckpointAbandoned"}
    if "AttemptStarted" in kinds:
        assert kinds.index("ResumeTargetChosen") < kinds.index("AttemptStarted")
