"""A run's life, command by command: given facts, when a command, then facts."""

from __future__ import annotations

import pytest
from trackway_common.errors import NotFound
from trackway_common.events import (
    AttemptEnded,
    AttemptPlaced,
    AttemptWrittenOff,
    CancelRequested,
    Change,
    CommandRefused,
    Evidence,
    NextMove,
    RetryDecided,
    RunCancelled,
    RunHeld,
    RunPhase,
    RunQueued,
    RunRefused,
    RunSubmitted,
    TerminationReason,
    Violation,
)
from trackway_scheduler.domain.commands import (
    AttemptEnd,
    CancelRun,
    ObservePool,
    PlaceAttempt,
    RecordRefusal,
    RefuseRun,
    WriteOffAttempt,
)
from trackway_scheduler.domain.decider import SCHEDULER
from trackway_scheduler.domain.state import initial

from tests.unit.scheduler.builders import (
    NOW,
    RUN,
    Given,
    ended,
    later,
    placed,
    ranks,
    run_spec,
    running,
    submit,
    submitted,
)

REFUSE = RefuseRun(
    run_id=RUN,
    request_digest="body",
    message="no",
    violations=(Violation(field="project", description="is required"),),
    project="demo",
    model_family="reasoning",
    owner="ada",
    at=NOW,
)
CANCEL = CancelRun(actor="ada", reason="enough", at=later(5))


def place(attempt: int = 1, at=NOW, agent_id: str = "agent-1", captures: tuple[str, ...] = ()) -> PlaceAttempt:
    return PlaceAttempt(
        attempt=attempt, pool="local", agent_id=agent_id, ranks=ranks(), captures_in_flight=captures, at=at
    )


def test_submission_queues_the_first_attempt_at_once():
    given = Given().when(submit()).then(*submitted())
    assert given.run.phase is RunPhase.QUEUED
    assert given.run.project == "demo"


def test_the_same_submission_again_changes_nothing():
    Given(*submitted()).when(submit()).then()


def test_the_same_request_id_with_another_body_is_refused_and_names_the_field():
    refused = Given(*submitted()).when(submit(request_digest="other")).refused
    assert refused is not None
    assert refused.reason == "ALREADY_EXISTS"
    assert [violation.field for violation in refused.violations] == ["request_id"]


def test_a_refused_submission_leaves_one_fact_and_ends_the_run():
    given = Given().when(REFUSE).then_kinds(RunRefused)
    assert given.run.phase is RunPhase.REFUSED
    assert given.run.violations == REFUSE.violations
    assert given.run.ended_at == NOW


def test_a_refused_run_can_not_be_submitted_with_another_body():
    given = Given().when(REFUSE).and_when(submit(request_digest="corrected"))
    assert given.refused is not None
    assert given.refused.reason == "ALREADY_EXISTS"


def test_placement_gives_the_attempt_an_epoch_and_measures_the_wait():
    given = Given(*submitted()).when(place(at=later(12)))
    (fact,) = given.made
    assert isinstance(fact, AttemptPlaced)
    assert (fact.attempt, fact.epoch, fact.queue_seconds) == (1, 1, 12.0)
    assert given.run.phase is RunPhase.RUNNING


@pytest.mark.parametrize("facts", [running(), ()], ids=["running", "never submitted"])
def test_only_a_queued_run_is_placed(facts):
    Given(*facts).when(place()).then()


def test_a_placement_of_an_earlier_wait_is_dropped():
    queued_again = (*running(), RunQueued(attempt=2, queued_at=NOW, not_before=NOW))
    Given(*queued_again).when(place(attempt=1)).then()


def test_nothing_is_placed_before_its_backoff_is_over():
    waiting = (*running(), RunQueued(attempt=2, queued_at=NOW, not_before=later(30)))
    Given(*waiting).when(place(attempt=2, at=later(29))).then()
    Given(*waiting).when(place(attempt=2, at=later(30))).then_kinds(AttemptPlaced)


def test_a_retry_on_another_agent_records_the_change_and_what_is_still_being_written():
    waiting = (*running(), RunQueued(attempt=2, queued_at=NOW, not_before=NOW))
    (fact,) = Given(*waiting).when(place(attempt=2, agent_id="agent-2", captures=("n7",))).made
    assert fact.epoch == 2
    assert fact.captures_in_flight == ("n7",)
    assert fact.changes == (
        Change(field="agent_id", before="agent-1", after="agent-2", why="the queue placed it where capacity was free"),
    )


def test_cancelling_a_queued_run_ends_it_at_once():
    given = Given(*submitted()).when(CANCEL)
    given.then(
        CancelRequested(reason="enough", actor="ada", requested_at=later(5)),
        RunCancelled(reason="CANCELLED_BY_USER", ended_at=later(5)),
    )
    assert given.run.phase is RunPhase.CANCELLED
    assert given.run.message == "by ada: enough"


def test_cancelling_a_running_run_waits_for_its_attempt():
    given = Given(*running()).when(CANCEL).then_kinds(CancelRequested)
    assert given.run.phase is RunPhase.RUNNING
    given.and_when(CANCEL).then()


@pytest.mark.parametrize("reason", [TerminationReason.CANCELLED_BY_USER, TerminationReason.UNKNOWN_KILL])
def test_whatever_ends_a_cancelled_attempt_the_run_is_cancelled(reason):
    given = Given(*running()).when(CANCEL).and_when(ended(reason)).then_kinds(RetryDecided, RunCancelled)
    assert given.made[0].move is NextMove.STOP
    assert given.run.phase is RunPhase.CANCELLED


def test_cancelling_an_evaluating_or_held_run_ends_it():
    evaluating = Given(*running()).when(ended(TerminationReason.COMPLETED, step=3))
    assert evaluating.run.phase is RunPhase.EVALUATING
    evaluating.and_when(CANCEL).then_kinds(CancelRequested, RunCancelled)
    held = (*running(), RunHeld(reason="STORAGE_FULL", message="", held_at=NOW))
    Given(*held).when(CANCEL).then_kinds(CancelRequested, RunCancelled)


def test_an_ended_run_can_not_be_cancelled():
    refused = Given(*submitted()).when(CANCEL).and_when(CANCEL).refused
    assert refused is not None
    assert refused.reason == "RUN_ENDED"


def test_a_run_that_nobody_submitted_can_not_be_cancelled():
    assert isinstance(Given().when(CANCEL).refused, NotFound)


def test_an_end_of_another_attempt_changes_nothing():
    Given(*running()).when(ended(TerminationReason.UNKNOWN, attempt=2)).then()


def test_an_end_is_decided_once():
    first = Given(*running()).when(ended(TerminationReason.PROCESS_CRASH)).then_kinds(RetryDecided, RunQueued)
    first.and_when(ended(TerminationReason.PROCESS_CRASH)).then()


def test_a_written_off_attempt_is_retried_and_its_late_end_changes_nothing():
    end = AttemptEnd(attempt=1, reason=TerminationReason.AGENT_LOST, cause="", last_committed=None, jitter=0.5, at=NOW)
    evidence = (Evidence(source="lease of agent agent-1", excerpt="silent"),)
    given = Given(*running()).when(WriteOffAttempt(end=end, evidence=evidence))
    given.then_kinds(AttemptWrittenOff, RetryDecided, RunQueued)
    assert given.made[0].evidence == evidence
    given.and_when(ended(TerminationReason.COMPLETED, step=9)).then()


def test_a_refusal_is_kept_with_who_asked_and_changes_no_state():
    violations = (Violation(field="name", description="?"),)
    command = RecordRefusal(command="CancelRun", actor="eve", reason="RUN_ENDED", message="no", violations=violations)
    given = Given(*running()).when(command)
    given.then(
        CommandRefused(command="CancelRun", actor="eve", reason="RUN_ENDED", message="no", violations=violations)
    )
    assert given.run == Given(*running()).run


def test_facts_of_other_streams_change_nothing():
    foreign = AttemptEnded(started_at=NOW, ended_at=NOW)
    assert SCHEDULER.evolve(Given(*running()).state, foreign) == Given(*running()).state


def test_a_command_for_another_kind_of_stream_is_refused():
    observe = ObservePool(
        agent_id="a", cluster_id="c", cpus=1, accelerators=0, memory_bytes=0, environment_digest="",
        python_version="", offers=(), at=NOW,
    )  # fmt: skip
    assert Given().when(observe).refused is not None
    assert Given(stream="datasets/x").when(CANCEL).refused is not None


def test_the_whole_way_of_phases():
    phases = [initial(f"runs/{RUN}").phase]
    state = initial(f"runs/{RUN}")
    for fact in (*submitted(), placed()):
        state = SCHEDULER.evolve(state, fact)
        phases.append(state.phase)
    assert phases == [RunPhase.UNSPECIFIED, RunPhase.SUBMITTED, RunPhase.QUEUED, RunPhase.RUNNING]
    assert isinstance(submitted()[0], RunSubmitted)
    assert state.spec == run_spec()
