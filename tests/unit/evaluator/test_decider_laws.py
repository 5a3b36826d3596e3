"""What holds after any commands."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from trackway_common.errors import CommandRejected
from trackway_common.events import (
    EvaluationCompleted,
    EvaluationExhausted,
    EvaluationFailed,
    EvaluationFailure,
    EvaluationRequested,
    EvaluationStarted,
)
from trackway_evaluator.domain.commands import (
    Command,
)

from .stories import REQUEST, Story, completion, failure, start

ANY_COMMAND = st.one_of(
    st.builds(lambda n: replace(REQUEST, round=n), st.integers(1, 3)),
    st.builds(start, st.integers(1, 6)),
    st.builds(failure, st.integers(1, 6), st.sampled_from(EvaluationFailure)),
    st.builds(completion, st.integers(1, 6)),
)


@given(st.lists(ANY_COMMAND, max_size=40))
def test_any_commands_leave_a_lawful_history(commands: list[Command]) -> None:
    story = Story()
    for command in commands:
        try:
            story.when(command)
        except CommandRejected:
            continue
    attempts = [fact.evaluation_attempt for fact in story.facts if isinstance(fact, EvaluationStarted)]
    ends = [fact for fact in story.facts if isinstance(fact, EvaluationCompleted | EvaluationExhausted)]
    assert attempts == sorted(set(attempts))
    assert sum(isinstance(fact, EvaluationCompleted) for fact in ends) <= 1
    evaluation_facts = (
        EvaluationRequested | EvaluationStarted | EvaluationFailed | EvaluationCompleted | EvaluationExhausted
    )
    # Structural: nothing of a training attempt can come out of here.
    assert all(isinstance(fact, evaluation_facts) for fact in story.facts)
    completed = [i for i, fact in enumerate(story.facts) if isinstance(fact, EvaluationCompleted)]
    assert not completed or completed[0] == len(story.facts) - 1
