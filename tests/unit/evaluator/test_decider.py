"""An evaluation's life: what each command makes happen, and which budget it spends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trackway_common.errors import CommandRejected
from trackway_common.events import (
    EvaluationCompleted,
    EvaluationExhausted,
    EvaluationFailed,
    EvaluationFailure,
    EvaluationPhase,
    EvaluationRequested,
    EvaluationStarted,
    NextMove,
    Verdict,
)
from trackway_evaluator.domain.budgets import RETRIES, batch_size
from trackway_evaluator.domain.commands import (
    Command,
)

from .stories import NOW, REQUEST, Story, completion, failure, start


def test_request_start_complete() -> None:
    story = Story()
    [requested] = story.when(REQUEST)
    assert isinstance(requested, EvaluationRequested)
    assert story.phase is EvaluationPhase.REQUESTED
    [started] = story.when(start(1))
    assert isinstance(started, EvaluationStarted)
    assert (started.evaluation_attempt, started.pid) == (1, 7)
    assert story.phase is EvaluationPhase.RUNNING
    [completed] = story.when(completion(1))
    assert isinstance(completed, EvaluationCompleted)
    assert completed.verdict is Verdict.PASSED
    assert completed.pack_digest == "sha256:p"
    assert completed.checkpoint.step == 40
    assert completed.started_at == NOW
    assert story.phase is EvaluationPhase.COMPLETED


def test_missed_gate_is_a_verdict_not_a_failure() -> None:
    [completed] = Story(REQUEST, start(1)).when(completion(1, accuracy=0.5))
    assert isinstance(completed, EvaluationCompleted)
    assert completed.verdict is Verdict.FAILED
    assert completed.gates[0].value == 0.5


def test_partial_result_never_passes_a_gate() -> None:
    [completed] = Story(REQUEST, start(1)).when(completion(1, accuracy=1.0, scored=9))
    assert isinstance(completed, EvaluationCompleted)
    assert completed.verdict is Verdict.FAILED


def test_gate_that_does_not_block_is_only_recorded() -> None:
    command = completion(1, accuracy=0.1)
    command = replace(command, gates=(replace(command.gates[0], blocking=False),))
    [completed] = Story(REQUEST, start(1)).when(command)
    assert isinstance(completed, EvaluationCompleted)
    assert completed.verdict is Verdict.PASSED
    assert completed.gates[0].verdict is Verdict.FAILED


@pytest.mark.parametrize(
    ("failure_kind", "retries"),
    [
        (EvaluationFailure.CRASH, 3),
        (EvaluationFailure.OOM, 2),
        (EvaluationFailure.JUDGE_ERROR, 8),
        (EvaluationFailure.TASK_DIGEST_MISMATCH, 0),
        (EvaluationFailure.CONFIG_INVALID, 0),
        (EvaluationFailure.INTERRUPTED, 20),
    ],
)
def test_each_failure_has_its_own_budget(failure_kind: EvaluationFailure, retries: int) -> None:
    story = Story(REQUEST)
    for attempt in range(1, retries + 1):
        story.when(start(attempt))
        [failed] = story.when(failure(attempt, failure_kind))
        assert isinstance(failed, EvaluationFailed)
        assert (failed.move, failed.spent, failed.budget) == (NextMove.RETRY, attempt, retries)
        assert story.phase is EvaluationPhase.RUNNING
    story.when(start(retries + 1))
    failed, exhausted = story.when(failure(retries + 1, failure_kind))
    assert isinstance(failed, EvaluationFailed)
    assert (failed.move, failed.spent) == (NextMove.HOLD, retries)
    assert isinstance(exhausted, EvaluationExhausted)
    assert exhausted.failure is failure_kind
    assert story.phase is EvaluationPhase.EXHAUSTED


def test_interruption_does_not_spend_the_crash_budget() -> None:
    story = Story(REQUEST)
    for attempt in range(1, 10):
        story.when(start(attempt))
        story.when(failure(attempt, EvaluationFailure.INTERRUPTED))
    story.when(start(10))
    [failed] = story.when(failure(10))
    assert isinstance(failed, EvaluationFailed)
    assert (failed.spent, failed.budget) == (1, 3)


def test_try_that_could_not_start_counts() -> None:
    story = Story(REQUEST)
    [failed] = story.when(failure(1))
    assert isinstance(failed, EvaluationFailed)
    assert story.when(start(2))


def test_same_order_again_changes_nothing() -> None:
    assert Story(REQUEST).when(REQUEST) == ()
    assert Story(REQUEST, start(1), completion(1)).when(REQUEST) == ()
    assert Story(REQUEST, start(1), completion(1)).when(replace(REQUEST, round=2)) == ()


def test_order_after_exhaustion_begins_with_fresh_budgets() -> None:
    story = Story(REQUEST, start(1), failure(1, EvaluationFailure.CONFIG_INVALID))
    assert story.when(REQUEST) == ()
    [requested] = story.when(replace(REQUEST, round=2))
    assert isinstance(requested, EvaluationRequested)
    story.when(start(2))
    [failed] = story.when(failure(2))
    assert isinstance(failed, EvaluationFailed)
    assert failed.spent == 1
    [evaluation] = story.state.evaluations
    assert len(evaluation.failures) == 2


@pytest.mark.parametrize(
    ("story", "command"),
    [
        (Story(), start(1)),
        (Story(REQUEST), start(2)),
        (Story(REQUEST, start(1)), start(2)),
        (Story(REQUEST, start(1)), failure(2)),
        (Story(REQUEST), completion(1)),
        (Story(REQUEST, start(1), failure(1)), completion(1)),
        (Story(REQUEST, start(1), completion(1)), failure(1)),
        (Story(REQUEST, start(1), completion(1)), start(2)),
    ],
)
def test_commands_out_of_turn_are_refused(story: Story, command: Command) -> None:
    with pytest.raises(CommandRejected):
        story.when(command)


def test_start_again_of_the_open_attempt_changes_nothing() -> None:
    assert Story(REQUEST, start(1)).when(start(1)) == ()


@pytest.mark.parametrize(("asked", "failures", "then"), [(32, 0, 32), (32, 1, 16), (32, 2, 8), (1, 2, 1), (3, 1, 1)])
def test_batch_is_halved_per_out_of_memory_failure(asked: int, failures: int, then: int) -> None:
    assert batch_size(asked, failures) == then


def test_every_failure_has_a_budget() -> None:
    assert set(RETRIES) == set(EvaluationFailure)
