"""What follows an attempt's end, for the reasons of the table."""

from __future__ import annotations

from datetime import timedelta

import pytest
from trackway_common.evaluation_pack import evaluation_identity
from trackway_common.events import (
    EvaluationPackRef,
    FinalEvaluationOrdered,
    Limits,
    NextMove,
    Progress,
    RetryDecided,
    RetryOverride,
    RunCancelled,
    RunFailed,
    RunHeld,
    RunPhase,
    RunQueued,
    RunSucceeded,
)
from trackway_common.events import TerminationReason as Reason
from trackway_common.reasons import POLICIES
from trackway_scheduler.domain.endings import runner_parameters

from tests.unit.scheduler.builders import NOW, PACK, Given, checkpoint, ended, later, placed, run_spec, running

NO_PACK = run_spec(evaluation_pack=EvaluationPackRef())


def crash_again(given: Given, reason: Reason, attempt: int, step: int | None = None) -> Given:
    """Place the queued attempt and end it."""
    return Given(*given.facts, *given.made, placed(attempt)).when(ended(reason, attempt, step=step))


def test_completed_orders_the_evaluation_of_the_last_committed_checkpoint():
    given = Given(*running()).when(ended(Reason.COMPLETED, step=40)).then_kinds(RetryDecided, FinalEvaluationOrdered)
    decided, ordered = given.made
    assert decided.move is NextMove.EVALUATE
    assert ordered.checkpoint == checkpoint(40)
    assert ordered.pack == PACK
    identity = evaluation_identity(PACK.digest, checkpoint(40).manifest_digest, runner_parameters(run_spec()))
    assert ordered.evaluation_id == identity
    assert given.run.phase is RunPhase.EVALUATING


def test_the_same_pack_on_another_checkpoint_is_another_evaluation():
    one = Given(*running()).when(ended(Reason.COMPLETED, step=40)).made[1]
    other = Given(*running()).when(ended(Reason.COMPLETED, step=41)).made[1]
    again = Given(*running()).when(ended(Reason.COMPLETED, step=40)).made[1]
    assert one.evaluation_id != other.evaluation_id
    assert one.evaluation_id == again.evaluation_id


def test_completed_without_a_pack_succeeds_with_its_checkpoint():
    given = Given(*running(NO_PACK)).when(ended(Reason.COMPLETED, step=40)).then_kinds(RetryDecided, RunSucceeded)
    assert given.made[1].result == checkpoint(40)
    assert given.run.phase is RunPhase.SUCCEEDED


def test_completed_without_a_checkpoint_fails_and_says_what_to_do():
    given = Given(*running()).when(ended(Reason.COMPLETED)).then_kinds(RetryDecided, RunFailed)
    assert given.made[1].reason == "NOTHING_TO_EVALUATE"
    assert "tiny" in given.made[1].message
    assert "checkpoint(step)" in given.made[1].message


def test_early_stopped_is_evaluated_too():
    Given(*running()).when(ended(Reason.EARLY_STOPPED, step=4)).then_kinds(RetryDecided, FinalEvaluationOrdered)


@pytest.mark.parametrize("reason", [Reason.CANCELLED_BY_USER, Reason.CANCELLED_BY_ADMIN])
def test_a_cancelled_attempt_cancels_the_run(reason):
    given = Given(*running()).when(ended(reason, step=3)).then_kinds(RetryDecided, RunCancelled)
    assert given.made[1].reason == reason.value


@pytest.mark.parametrize(
    "reason",
    [
        Reason.USER_CODE_ERROR,
        Reason.CONFIG_INVALID,
        Reason.DATA_CORRUPT,
        Reason.DATA_SCHEMA_DRIFT,
        Reason.CHECKPOINT_INCOMPATIBLE,
        Reason.ADMISSION_INFEASIBLE,
        Reason.DEADLINE_EXCEEDED,
    ],
)
def test_what_a_retry_can_not_mend_fails_at_once(reason):
    given = Given(*running()).when(ended(reason, cause="it broke", step=3)).then_kinds(RetryDecided, RunFailed)
    decided, failed = given.made
    assert (decided.move, decided.spent, decided.budget) == (NextMove.STOP, 0, 0)
    assert decided.ledger == reason.value
    assert failed.reason == reason.value
    assert failed.message == f"it broke. {reason} is not retried."


@pytest.mark.parametrize(
    ("reason", "budget", "lowest_s", "highest_s"),
    [
        (Reason.PROCESS_CRASH, 2, 24, 36),
        (Reason.UNKNOWN_KILL, 2, 24, 36),
        (Reason.LAUNCH_FAILED, 3, 24, 36),
        (Reason.NODE_LOST, 5, 8, 12),
        (Reason.DEVICE_HARDWARE, 3, 0, 0),
        (Reason.UNKNOWN, 1, 48, 72),
    ],
)
@pytest.mark.parametrize("jitter", [0.0, 1.0])
def test_a_retry_names_its_budget_and_waits_its_backoff(reason, budget, lowest_s, highest_s, jitter):
    given = Given(*running()).when(ended(reason, jitter=jitter, at=later(7))).then_kinds(RetryDecided, RunQueued)
    decided, queued = given.made
    assert (decided.move, decided.ledger, decided.spent, decided.budget) == (NextMove.RETRY, reason.value, 1, budget)
    assert decided.backoff_seconds == pytest.approx(highest_s if jitter else lowest_s)
    assert decided.not_before == queued.not_before == later(7) + timedelta(seconds=decided.backoff_seconds)
    assert queued.attempt == 2
    assert given.run.phase is RunPhase.QUEUED


def test_a_spent_budget_fails_the_run_and_says_why():
    given = Given(*running()).when(ended(Reason.PROCESS_CRASH))
    given = crash_again(given, Reason.PROCESS_CRASH, 2).then_kinds(RetryDecided, RunQueued)
    given = crash_again(given, Reason.PROCESS_CRASH, 3).then_kinds(RetryDecided, RunFailed)
    decided, failed = given.made
    assert (decided.move, decided.spent, decided.budget) == (NextMove.STOP, 2, 2)
    assert failed.reason == "PROCESS_CRASH"
    assert "2 of 2 retries without a newly committed checkpoint" in failed.message


def test_a_new_commit_gives_the_budget_back():
    given = Given(*running()).when(ended(Reason.PROCESS_CRASH, step=10))
    given = crash_again(given, Reason.PROCESS_CRASH, 2, step=10)
    given = crash_again(given, Reason.PROCESS_CRASH, 3, step=20).then_kinds(RetryDecided, RunQueued)
    assert given.made[0].spent == 1
    assert given.made[0].progress is Progress.ADVANCED
    given = crash_again(given, Reason.PROCESS_CRASH, 4, step=20)
    assert given.made[0].spent == 2
    assert given.made[0].progress is Progress.NONE


def test_committing_the_same_step_again_is_no_progress():
    given = Given(*running()).when(ended(Reason.PROCESS_CRASH, step=10))
    given = crash_again(given, Reason.PROCESS_CRASH, 2, step=10)
    crash_again(given, Reason.PROCESS_CRASH, 3, step=5).then_kinds(RetryDecided, RunFailed)


def test_a_lifetime_budget_ignores_progress():
    given = Given(*running()).when(ended(Reason.CHECKPOINT_CORRUPT, step=1))
    given = crash_again(given, Reason.CHECKPOINT_CORRUPT, 2, step=2).then_kinds(RetryDecided, RunQueued)
    assert given.made[0].backoff_seconds == 0
    crash_again(given, Reason.CHECKPOINT_CORRUPT, 3, step=3).then_kinds(RetryDecided, RunFailed)


def test_alternating_reasons_meet_the_general_ceiling():
    given, attempt = Given(*running(run_spec(retry_ceiling=3))).when(ended(Reason.NODE_LOST)), 1
    for reason in (Reason.PROCESS_CRASH, Reason.STORAGE_TRANSIENT):
        attempt += 1
        given = crash_again(given, reason, attempt).then_kinds(RetryDecided, RunQueued)
    given = crash_again(given, Reason.NODE_LOST, attempt + 1).then_kinds(RetryDecided, RunFailed)
    assert (given.made[0].ledger, given.made[0].spent, given.made[0].budget) == ("ceiling", 3, 3)


def test_preemptions_do_not_meet_the_general_ceiling():
    given, attempt = Given(*running(run_spec(retry_ceiling=2))).when(ended(Reason.PREEMPTED_SPOT)), 1
    while attempt < 10:
        attempt += 1
        given = crash_again(given, Reason.PREEMPTED_SPOT, attempt).then_kinds(RetryDecided, RunQueued)
    crash_again(given, Reason.PREEMPTED_SPOT, 11).then_kinds(RetryDecided, RunFailed)


def test_max_attempts_ends_even_what_makes_progress():
    given = Given(*running(run_spec(max_attempts=2))).when(ended(Reason.NODE_LOST, step=1))
    given = crash_again(given, Reason.NODE_LOST, 2, step=2).then_kinds(RetryDecided, RunFailed)
    assert (given.made[0].ledger, given.made[0].budget) == ("max_attempts", 2)


def test_capacity_timeout_is_requeued_without_limit():
    given = Given(*running()).when(ended(Reason.CAPACITY_TIMEOUT))
    for attempt in range(2, 61):
        given = crash_again(given, Reason.CAPACITY_TIMEOUT, attempt).then_kinds(RetryDecided, RunQueued)
    assert given.made[0].budget == -1
    assert given.made[0].backoff_seconds == pytest.approx(600)


def test_capacity_timeouts_leave_the_attempts_to_what_fails():
    given = Given(*running(run_spec(max_attempts=2))).when(ended(Reason.CAPACITY_TIMEOUT))
    given = crash_again(given, Reason.CAPACITY_TIMEOUT, 2).then_kinds(RetryDecided, RunQueued)
    given = crash_again(given, Reason.NODE_LOST, 3).then_kinds(RetryDecided, RunQueued)
    given = crash_again(given, Reason.CAPACITY_TIMEOUT, 4).then_kinds(RetryDecided, RunQueued)
    given = crash_again(given, Reason.NODE_LOST, 5).then_kinds(RetryDecided, RunFailed)
    assert (given.made[0].ledger, given.made[0].spent, given.made[0].budget) == ("max_attempts", 2, 2)


INTERRUPTIONS = (Reason.PREEMPTED_SCHEDULER, Reason.PREEMPTED_SPOT, Reason.NODE_DRAIN, Reason.WALLTIME)


@pytest.mark.parametrize("reason", INTERRUPTIONS)
def test_an_interruption_with_progress_is_retried_without_limit(reason):
    given = Given(*running()).when(ended(reason, step=1))
    for attempt in range(2, 61):
        given = crash_again(given, reason, attempt, step=attempt).then_kinds(RetryDecided, RunQueued)
    assert (given.made[0].spent, given.made[0].progress) == (1, Progress.ADVANCED)


@pytest.mark.parametrize("reason", INTERRUPTIONS)
def test_an_interruption_without_progress_is_one_of_the_attempts(reason):
    given = Given(*running(run_spec(max_attempts=1))).when(ended(reason, step=1)).then_kinds(RetryDecided, RunQueued)
    given = crash_again(given, reason, 2, step=1).then_kinds(RetryDecided, RunFailed)
    assert (given.made[0].ledger, given.made[0].spent) == ("max_attempts", 1)


def test_the_spec_overrides_budget_and_backoff_of_a_reason():
    override = RetryOverride(reason=Reason.PROCESS_CRASH, max=1, backoff_seconds=0.5)
    given = Given(*running(run_spec(retry=(override,)))).when(ended(Reason.PROCESS_CRASH))
    assert (given.made[0].budget, given.made[0].backoff_seconds) == (1, 0.5)
    crash_again(given, Reason.PROCESS_CRASH, 2).then_kinds(RetryDecided, RunFailed)


def test_an_unlimited_override_still_meets_the_ceiling():
    spec = run_spec(retry=(RetryOverride(reason=Reason.USER_CODE_ERROR, max=-1),))
    given, attempt = Given(*running(spec)).when(ended(Reason.USER_CODE_ERROR)), 1
    while isinstance(given.made[1], RunQueued):
        attempt += 1
        given = crash_again(given, Reason.USER_CODE_ERROR, attempt)
    assert given.made[0].ledger == "ceiling"
    assert attempt == 9


@pytest.mark.parametrize("reason", [Reason.DEVICE_OOM, Reason.HOST_OOM])
def test_out_of_memory_is_never_retried_in_the_same_shape(reason):
    given = Given(*running()).when(ended(reason)).then_kinds(RetryDecided, RunFailed)
    assert "same shape" in given.made[0].why
    assert "no change is possible: " in given.made[0].why


@pytest.mark.parametrize("reason", [Reason.STORAGE_FULL, Reason.BUDGET_EXHAUSTED, Reason.QUOTA_REVOKED])
def test_what_a_person_must_settle_holds_the_run(reason):
    given = Given(*running()).when(ended(reason, cause="disk full")).then_kinds(RetryDecided, RunHeld)
    assert given.made[1].reason == reason.value
    assert given.run.phase is RunPhase.HELD


def test_divergence_rolls_back_once_then_waits_for_a_person():
    given = Given(*running()).when(ended(Reason.NUMERIC_DIVERGENCE, step=5)).then_kinds(RetryDecided, RunQueued)
    crash_again(given, Reason.NUMERIC_DIVERGENCE, 2, step=9).then_kinds(RetryDecided, RunHeld)


def test_a_reason_of_a_newer_schema_is_treated_as_unknown():
    given = Given(*running()).when(ended(Reason.UNSPECIFIED)).then_kinds(RetryDecided, RunQueued)
    assert given.made[0].reason is Reason.UNKNOWN
    crash_again(given, Reason.UNSPECIFIED, 2).then_kinds(RetryDecided, RunFailed)


@pytest.mark.parametrize("reason", sorted(POLICIES))
def test_every_reason_leads_somewhere_the_state_machine_allows(reason):
    given = Given(*running()).when(ended(reason, step=1))
    assert given.refused is None
    assert isinstance(given.made[0], RetryDecided)
    assert given.run.phase in {
        RunPhase.QUEUED, RunPhase.HELD, RunPhase.EVALUATING, RunPhase.FAILED, RunPhase.CANCELLED
    }  # fmt: skip
    assert given.made[0].why.endswith((".", ")"))
    assert given.made[0].decided_at == NOW


@pytest.mark.parametrize(
    ("limits", "move"),
    [
        (Limits(deadline=later(10_000)), NextMove.RETRY),
        (Limits(deadline=later(1)), NextMove.STOP),
        (Limits(deadline_s=10_000), NextMove.RETRY),
        (Limits(deadline_s=1), NextMove.STOP),
        (Limits(wall_time_s=1), NextMove.RETRY),
    ],
)
def test_a_run_whose_deadline_comes_before_the_next_attempt_is_not_retried(limits: Limits, move: NextMove):
    given = Given(*running(run_spec(limits=limits))).when(ended(Reason.PROCESS_CRASH))
    decided = given.made[0]
    assert decided.move is move
    if move is NextMove.STOP:
        assert decided.ledger == "deadline"
        assert "deadline" in decided.why
        assert isinstance(given.made[1], RunFailed)
