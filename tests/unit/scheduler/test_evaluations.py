"""How a final evaluation concludes a run, and that it can't cost a training attempt."""

from __future__ import annotations

import ast
import typing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.events import (
    FinalEvaluationOrdered,
    RetryDecided,
    RunFailed,
    RunHeld,
    RunPhase,
    RunSucceeded,
    TerminationReason,
    Verdict,
)
from trackway_scheduler.domain import evaluations
from trackway_scheduler.domain.commands import RecordEvaluationCompleted, RecordEvaluationExhausted

from tests.unit.scheduler.builders import Given, checkpoint, ended, later, running

DOMAIN = Path(evaluations.__file__).parent


def evaluating() -> Given:
    given = Given(*running()).when(ended(TerminationReason.COMPLETED, step=40))
    return Given(*given.facts, *given.made)


def identity() -> str:
    ordered = evaluating().run.evaluation
    assert isinstance(ordered, FinalEvaluationOrdered)
    return ordered.evaluation_id


def completed(verdict: Verdict, evaluation_id: str = "", gates: tuple[str, ...] = ()) -> RecordEvaluationCompleted:
    return RecordEvaluationCompleted(
        evaluation_id=evaluation_id or identity(), verdict=verdict, failed_gates=gates, at=later(60)
    )


def test_a_passed_verdict_succeeds_with_the_evaluated_checkpoint():
    given = evaluating().when(completed(Verdict.PASSED))
    given.then(RunSucceeded(result=checkpoint(40), ended_at=later(60)))
    assert given.run.phase is RunPhase.SUCCEEDED


def test_a_failed_gate_fails_the_run_and_names_the_gate():
    given = evaluating().when(completed(Verdict.FAILED, gates=("accuracy is 0.7, the gate asks >= 0.8",)))
    given.then_kinds(RunFailed)
    assert given.made[0].reason == "GATE_FAILED"
    assert "accuracy is 0.7" in given.made[0].message


@pytest.mark.parametrize("message", ["CRASH after 3 attempts.", "judge away."])
def test_an_exhausted_evaluation_holds_the_run_and_costs_no_training_attempt(message):
    before = evaluating().run
    given = evaluating().when(RecordEvaluationExhausted(evaluation_id=identity(), message=message, at=later(9)))
    given.then_kinds(RunHeld)
    assert given.made[0].reason == "EVALUATION_EXHAUSTED"
    assert message in given.made[0].message
    assert given.run.phase is RunPhase.HELD
    assert (given.run.attempt, given.run.ledger) == (before.attempt, before.ledger)
    assert given.run.last_committed == checkpoint(40)


def test_an_unreadable_verdict_waits_for_a_person():
    evaluating().when(completed(Verdict.UNSPECIFIED)).then_kinds(RunHeld)


@pytest.mark.parametrize("facts", [running(), ()])
def test_an_outcome_counts_only_while_evaluating(facts):
    Given(*facts).when(completed(Verdict.PASSED)).then()


def test_an_outcome_of_another_evaluation_changes_nothing():
    evaluating().when(completed(Verdict.PASSED, evaluation_id="f" * 32)).then()


def test_no_conclusion_is_a_retry_of_training():
    """The promise in types: what handles evaluation facts has no constructor for an attempt in its return type."""
    returned = typing.get_type_hints(evaluations.conclude)["return"]
    assert set(typing.get_args(returned)) == {RunSucceeded, RunFailed, RunHeld}
    names = vars(evaluations)
    assert not {"RunQueued", "AttemptPlaced", "RetryDecided", RetryDecided.__name__} & set(names)


def test_what_handles_evaluations_can_not_reach_what_decides_retries():
    """In imports: neither the module nor anything of this domain that it uses knows budgets or what a retry changes."""
    seen: set[str] = set()
    waiting = ["evaluations"]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            tree = ast.parse((DOMAIN / f"{module}.py").read_text(encoding="utf-8"))
            names = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            waiting += [name.rpartition(".")[2] for name in names if name.startswith("trackway_scheduler.domain.")]
    assert {"evaluations", "commands", "state"} <= seen
    assert not seen & {"budgets", "remedies", "exclusions", "endings", "reactions", "placing", "releases"}


@given(st.sampled_from(sorted(Verdict)), st.booleans(), st.text(max_size=9))
def test_no_outcome_of_an_evaluation_costs_training_anything(verdict, exhausted, message):
    before = evaluating().run
    outcome = (
        RecordEvaluationExhausted(evaluation_id=identity(), message=message, at=later(9))
        if exhausted
        else completed(verdict, gates=(message,))
    )
    given = evaluating().when(outcome)
    assert isinstance(given.made[0], RunSucceeded | RunFailed | RunHeld)
    assert len(given.made) == 1
    after = given.run
    assert (after.attempt, after.ledger, after.shape, after.changes, after.decisions) == (
        before.attempt, before.ledger, before.shape, before.changes, before.decisions,
    )  # fmt: skip
