"""Held runs wait for a person, whose release says where they go on."""

from __future__ import annotations

import pytest
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.events import (
    EvaluationExhausted,
    FinalEvaluationOrdered,
    RetryDecided,
    RunHeld,
    RunPhase,
    RunQueued,
    RunReleased,
)
from trackway_common.events import TerminationReason as Reason
from trackway_common.reasons import POLICIES
from trackway_scheduler.domain.commands import RecordEvaluationExhausted, ReleaseRun
from trackway_scheduler.domain.outside import Cause, Outside, note
from trackway_scheduler.domain.reactions import Moment, react

from tests.unit.scheduler.builders import NOW, Given, ended, later, placed, run_spec, running

RELEASE = ReleaseRun(actor="ada", reason="space was made", at=later(60))
HELD = Given(*running()).when(ended(Reason.STORAGE_FULL, step=3))


def test_the_reasons_that_hold():
    assert {reason for reason, policy in POLICIES.items() if policy.exhausted == "HOLD"} == {
        Reason.STORAGE_FULL, Reason.NUMERIC_DIVERGENCE, Reason.BUDGET_EXHAUSTED, Reason.QUOTA_REVOKED,
    }  # fmt: skip
    HELD.then_kinds(RetryDecided, RunHeld)
    assert "only a person" in HELD.run.message


def test_a_release_queues_the_next_attempt():
    HELD.and_when(RELEASE).then(
        RunReleased(reason="space was made", actor="ada", released_at=later(60)),
        RunQueued(attempt=2, queued_at=later(60), not_before=later(60)),
    )


def test_a_release_counts_anew_what_is_without_progress_and_nothing_else():
    given = Given(*running()).when(ended(Reason.UNKNOWN_KILL))
    given = Given(*given.facts, *given.made, placed(2)).when(ended(Reason.NUMERIC_DIVERGENCE, 2))
    given = Given(*given.facts, *given.made, placed(3)).when(ended(Reason.NUMERIC_DIVERGENCE, 3))
    assert given.run.phase is RunPhase.HELD
    assert given.run.ledger.since_progress == (Reason.UNKNOWN_KILL, Reason.NUMERIC_DIVERGENCE)
    released = given.and_when(RELEASE)
    assert released.run.ledger.since_progress == ()
    assert released.run.ledger.lifetime == (Reason.UNKNOWN_KILL, Reason.NUMERIC_DIVERGENCE)
    held_again = Given(*released.facts, *released.made, placed(4)).when(ended(Reason.NUMERIC_DIVERGENCE, 4))
    held_again.then_kinds(RetryDecided, RunHeld)


def test_an_exhausted_evaluation_is_ordered_again_and_only_a_new_outcome_counts():
    given = Given(*running()).when(ended(Reason.COMPLETED, step=40))
    identity = given.run.evaluation.evaluation_id
    spent = EvaluationExhausted(evaluation_id=identity, message="crashed.", exhausted_at=NOW)
    outside = note(Outside(), spent, Cause(commit_id="c-1"))
    moment = Moment(at=later(9), jitter=0.5)
    first = react(given.run, outside, moment)
    held = given.and_when(first.command).then_kinds(RunHeld)
    again = held.and_when(RELEASE).then_kinds(RunReleased, FinalEvaluationOrdered)
    assert again.run.phase is RunPhase.EVALUATING
    assert again.made[1].evaluation_id == identity
    assert react(again.run, outside, moment) is None
    second = react(again.run, note(outside, spent, Cause(commit_id="c-2")), moment)
    assert isinstance(second.command, RecordEvaluationExhausted)
    assert second.command_id != first.command_id
    assert again.run.attempt == 1


@pytest.mark.parametrize("facts", [running(), (*HELD.facts, *HELD.made, *HELD.and_when(RELEASE).made)])
def test_only_a_held_run_is_released(facts):
    refused = Given(*facts).when(RELEASE).refused
    assert isinstance(refused, CommandRejected)
    assert refused.reason == "NOT_HELD"


def test_a_release_says_why():
    refused = HELD.and_when(ReleaseRun(actor="ada", reason=" ", at=NOW)).refused
    assert [violation.field for violation in refused.violations] == ["reason"]


def test_a_run_without_attempts_left_is_not_released():
    held = Given(*running(run_spec(max_attempts=1))).when(ended(Reason.STORAGE_FULL))
    refused = held.and_when(RELEASE).refused
    assert refused.reason == "ATTEMPTS_SPENT"


def test_attempts_that_were_never_granted_are_left_to_a_released_run():
    given = Given(*running(run_spec(max_attempts=2))).when(ended(Reason.CAPACITY_TIMEOUT))
    held = Given(*given.facts, *given.made, placed(2)).when(ended(Reason.STORAGE_FULL, 2))
    held.and_when(RELEASE).then_kinds(RunReleased, RunQueued)


def test_a_run_that_nobody_submitted_is_not_there():
    assert isinstance(Given().when(RELEASE).refused, NotFound)
