"""Every accelerator-second of a run has one use, and it is the right one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common import events as e
from trackway_common.errors import NotFound
from trackway_common.events import TerminationReason
from trackway_common.history.fold import fold_run
from trackway_common.history.goodput import PARTS, AttemptGoodput, Goodput, goodput_of
from trackway_common.history.receipt import attempt_receipt
from trackway_common.history.receipt.seconds import SecondsColumns, Span, split_seconds
from trackway_common.testing.run_clocks import (
    clocks,
    failed_before_its_first_step,
    hung,
    hung_at_start,
    measured_and_killed,
    measured_and_resumed,
    resumed_further_back,
)
from trackway_common.testing.run_facts import RUN_ID, START, RunFacts
from trackway_common.testing.run_steps import committed, placed, started, submitted
from trackway_common.testing.run_stories import cancelled_in_queue, killed_and_resumed, refused, user_error
from trackway_common.testing.run_troubles import held_after_evaluation, script_started_over, written_off

from tests.support.histories import SECONDS, TIMES, histories, phases

STORIES = (
    measured_and_killed,
    measured_and_resumed,
    resumed_further_back,
    hung,
    hung_at_start,
    failed_before_its_first_step,
    killed_and_resumed,
    user_error,
    script_started_over,
    written_off,
    held_after_evaluation,
)
HOUR = START + timedelta(hours=1)


def goodput(facts: RunFacts, **options: object) -> Goodput:
    return goodput_of(fold_run(RUN_ID, facts.facts_only), **({"as_of": HOUR} | options))


def seconds(attempt: AttemptGoodput | Goodput) -> dict[str, float]:
    """Parts of some size, per accelerator of the two that every story has."""
    return {part.name: round(part.seconds / 2, 6) for part in attempt.parts if part.seconds}


def test_a_killed_attempt_keeps_what_its_last_commit_holds_and_loses_the_rest() -> None:
    [attempt] = goodput(measured_and_killed()).attempts
    assert seconds(attempt) == {
        "startup": 5.3,
        "productive": 15.25,
        "data_wait": 4.0,
        "stall": 0.5,
        # 20 s from the first step to the capture, of which the session measured 19.75 s.
        "unattributed": 0.25,
        # From the capture, not from when the agent heard of it.
        "lost": 8.7,
        "idle": 0.5,
    }
    assert attempt.wall_seconds == pytest.approx(34.5)
    assert attempt.seconds == pytest.approx(2 * 34.5)
    assert (attempt.accelerators, attempt.queue_seconds, attempt.measured) == (2, 2.0, True)
    assert attempt.largest_loss == "lost"


def test_a_finished_attempt_keeps_every_step_and_its_teardown_is_idle() -> None:
    attempt = goodput(measured_and_resumed()).attempts[1]
    assert seconds(attempt) == {
        "startup": 4.05,
        "restore": 1.25,
        "productive": 17.25,
        "data_wait": 3.0,
        "stall": 0.5,
        "idle": 0.5,
    }


def test_the_steps_behind_the_next_resume_target_are_lost_though_they_were_committed() -> None:
    straight, back = goodput(measured_and_killed()), goodput(resumed_further_back())
    before, after = seconds(straight.attempts[0]), seconds(back.attempts[0])
    assert after["productive"] == 7.75
    assert after["lost"] == pytest.approx(before["lost"] + 10.0)
    assert sum(after.values()) == pytest.approx(sum(before.values()))


def test_a_hang_is_the_time_from_the_last_progress_to_the_order_to_stop() -> None:
    [attempt] = goodput(hung()).attempts
    assert seconds(attempt) == {
        "startup": 5.3,
        "productive": 8.75,
        "data_wait": 1.0,
        "stall": 0.25,
        "lost": 3.0,
        "hang": 40.0,
        "idle": 1.0,
    }
    assert goodput(hung()).hint.startswith("Most was spent standing still")


def test_a_hang_before_the_first_step_is_no_startup() -> None:
    [attempt] = goodput(hung_at_start()).attempts
    assert seconds(attempt) == {"startup": 7.0, "hang": 30.0}


def test_a_program_that_failed_before_its_first_step_was_starting_all_the_time() -> None:
    [attempt] = goodput(failed_before_its_first_step()).attempts
    assert seconds(attempt) == {"startup": 5.5, "restore": 0.5, "idle": 0.5}


def test_a_program_without_a_session_is_not_measured() -> None:
    attempts = goodput(script_started_over()).attempts
    assert [attempt.measured for attempt in attempts] == [False, False]
    assert seconds(attempts[0]) == {"startup": 3.0, "lost": 20.0}


def test_a_running_attempt_is_split_so_far_and_what_no_commit_holds_is_open() -> None:
    facts = started(placed(submitted(RunFacts()), 1), 1)
    at = facts.after(10.0).now
    committed(facts, 1, 20, 2, phases=clocks(at, wait=1.0, stall=0.5, step=8.5))
    [attempt] = goodput(facts, as_of=at + timedelta(seconds=7)).attempts
    assert (attempt.state, attempt.reason) == ("RUNNING", "IN_PROGRESS")
    assert seconds(attempt) == {
        "startup": 5.3,
        "productive": 8.5,
        "data_wait": 1.0,
        "stall": 0.5,
        "uncommitted": 7.0,
    }


def test_the_run_is_the_sum_of_its_attempts_and_shares_are_of_the_whole() -> None:
    whole = goodput(measured_and_resumed())
    assert whole.seconds == pytest.approx(sum(attempt.seconds for attempt in whole.attempts))
    assert whole.queue_seconds == 32.0
    assert sum(part.seconds for part in whole.parts) == pytest.approx(whole.seconds)
    assert sum(part.share for part in whole.parts) == pytest.approx(1.0)
    assert whole.largest_loss == "startup"
    assert whole.name == f"projects/demo/runs/{RUN_ID}"


def test_one_attempt_alone() -> None:
    only = goodput(measured_and_resumed(), only=2)
    assert [attempt.attempt for attempt in only.attempts] == [2]
    assert only.seconds == only.attempts[0].seconds
    with pytest.raises(NotFound, match="no attempt 3"):
        goodput(measured_and_resumed(), only=3)


def test_a_run_without_a_placement_used_nothing() -> None:
    whole = goodput(cancelled_in_queue())
    assert (whole.attempts, whole.seconds, whole.largest_loss, whole.hint) == ((), 0.0, "", "")
    with pytest.raises(NotFound, match="never queued"):
        goodput(refused())


@pytest.mark.parametrize("story", STORIES)
def test_parts_of_every_story_add_up_and_agree_with_the_receipts(story: Callable[[], RunFacts]) -> None:
    facts = story()
    history = fold_run(RUN_ID, facts.facts_only)
    for attempt in goodput_of(history, as_of=facts.now).attempts:
        parts = {part.name: part.seconds for part in attempt.parts}
        assert sum(parts.values()) == pytest.approx(attempt.wall_seconds * attempt.accelerators, rel=1e-9)
        assert all(value >= 0 for value in parts.values())
        if attempt.state == "ENDED":
            columns = attempt_receipt(history, attempt.attempt).seconds
            for name, column in PARTS.items():
                assert parts[name] == pytest.approx(getattr(columns, column) * attempt.accelerators)


def captures() -> st.SearchStrategy[list[tuple[e.CheckpointStarted, bool]]]:
    capture = st.builds(
        e.CheckpointStarted,
        step=st.integers(1, 99),
        blocked_seconds=SECONDS,
        started_at=TIMES,
        phases=st.none() | phases(),
    )
    return st.lists(st.tuples(capture, st.booleans()), max_size=4)


@given(
    span=st.builds(
        Span,
        placed_at=st.just(START),
        ranks_started_at=st.none() | TIMES,
        first_step_at=st.none() | TIMES,
        failed_at=st.none() | TIMES,
        stopping_at=st.none() | TIMES,
        last_progress_at=st.none() | TIMES,
        ended_at=TIMES,
        reason=st.none() | st.sampled_from(TerminationReason),
        phases=st.none() | phases(),
    ),
    made=captures(),
)
def test_parts_add_up_to_the_whole_whatever_clocks_and_sessions_say(
    span: Span, made: list[tuple[e.CheckpointStarted, bool]]
) -> None:
    columns = split_seconds(span, [c for c, _ in made], [c for c, kept in made if kept])
    parts = [getattr(columns, column) for column in PARTS.values()]
    assert all(part >= 0 for part in parts)
    assert sum(parts) == pytest.approx(columns.wall_seconds, abs=1e-6)


@given(facts=histories(RUN_ID))
def test_parts_of_any_history_add_up_and_are_never_negative(facts: RunFacts) -> None:
    whole = goodput(facts, as_of=facts.now)
    for attempt in whole.attempts:
        assert all(part.seconds >= 0 for part in attempt.parts)
        assert sum(part.seconds for part in attempt.parts) == pytest.approx(attempt.seconds, abs=1e-6)
        assert attempt.seconds == pytest.approx(attempt.wall_seconds * attempt.accelerators)
    assert sum(part.seconds for part in whole.parts) == pytest.approx(whole.seconds, abs=1e-6)


def test_every_part_is_a_column() -> None:
    columns = set(SecondsColumns.__dataclass_fields__) - {"wall_seconds"}
    assert set(PARTS.values()) == columns


def test_clocks_of_a_bad_writer_are_brought_within_the_marks() -> None:
    late = datetime(2200, 1, 1, tzinfo=START.tzinfo)
    span = Span(
        placed_at=START,
        first_step_at=START + timedelta(seconds=5),
        last_progress_at=late,
        ended_at=START + timedelta(seconds=20),
        reason=TerminationReason.COMPLETED,
        phases=clocks(late, wait=1e6, stall=1e6, step=1e6, restore=1e6),
    )
    columns = split_seconds(span, (), ())
    assert (columns.restore_seconds, columns.data_wait_seconds) == (5.0, 15.0)
    assert columns.wall_seconds == 20.0
