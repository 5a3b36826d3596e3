"""The receipt of an attempt holds every column that the architecture asks for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.errors import NotFound
from trackway_common.events import CheckpointQuarantined, CheckpointStarted, TerminationReason
from trackway_common.history.fold import fold_run
from trackway_common.history.receipt import AttemptReceipt, attempt_receipt, columns_of
from trackway_common.history.receipt.build import LastSeen
from trackway_common.history.receipt.seconds import Span, split_seconds
from trackway_common.testing.run_facts import RUN_ID, START, RunFacts, sha
from trackway_common.testing.run_shapes import out_of_memory
from trackway_common.testing.run_steps import placed, started, submitted
from trackway_common.testing.run_stories import killed, killed_and_resumed
from trackway_common.testing.run_troubles import script_started_over, written_off

TRAINED_S = 20.5
SEEN = LastSeen(at=START + timedelta(seconds=60), step=33)


def receipt(facts: RunFacts, number: int = 1) -> AttemptReceipt:
    return attempt_receipt(fold_run(RUN_ID, facts.facts_only), number)


def test_receipt_of_a_killed_attempt() -> None:
    row = columns_of(receipt(killed_and_resumed()))
    assert row["termination_reason"] == "UNKNOWN_KILL"
    assert row["domain"] == "UNKNOWN"
    assert row["config_digest"] == sha("c")
    assert row["dataset_digests"] == (sha("d"),)
    assert row["environment_digest"] == sha("e")
    assert row["nodes"] == ("node-a",)
    assert row["resumed_from"] == ""
    assert row["produced"] == ("s000000020-e0001-n020", "s000000040-e0001-n040")
    assert row["last_committed_step"] == 40
    assert row["steps_lost"] == 17
    assert row["next_move"] == "RETRY"
    assert (row["ledger"], row["ledger_spent"], row["ledger_budget"]) == ("UNKNOWN_KILL", 1, 2)
    assert row["gpu_seconds"] == pytest.approx(62.8)
    assert row["cost"] == pytest.approx(62.8 / 3600 * 0.36)
    assert row["queue_seconds"] == 2.0


def test_receipt_of_the_retry_names_what_it_resumed_from_and_who_judged_it() -> None:
    row = columns_of(receipt(killed_and_resumed(), 2))
    assert row["resumed_from"] == "s000000040-e0001-n040"
    assert row["retry_number"] == 1
    assert row["steps_lost"] == 0
    assert row["evaluator_versions"] == ("builtin 0.1.0",)
    assert row["evaluation_verdicts"] == ("PASSED",)
    assert row["trace_id"] == "4bf92f3577b34da6a3ce929d0e0e4736"


def test_time_is_split_by_what_a_commit_kept() -> None:
    seconds = receipt(killed_and_resumed()).seconds
    assert seconds.startup_seconds == pytest.approx(5.3)
    assert seconds.productive_seconds == pytest.approx(TRAINED_S - seconds.stall_seconds)
    assert seconds.stall_seconds == pytest.approx(0.05)
    assert seconds.lost_seconds == pytest.approx(8.5)
    assert seconds.idle_seconds == pytest.approx(0.4)
    assert seconds.wall_seconds == pytest.approx(34.7)


def test_steps_behind_a_quarantined_commit_are_lost() -> None:
    facts = killed(RunFacts()).checkpoint(CheckpointQuarantined(commit_slot=3, why="damaged"))
    assert receipt(facts).seconds.lost_seconds == pytest.approx(8.5 + 10.5)


def test_live_attempt_reads_in_progress_and_counts_up_to_its_last_heartbeat() -> None:
    facts = started(placed(submitted(RunFacts()), 1), 1)
    live = attempt_receipt(fold_run(RUN_ID, facts.facts_only), 1, last_seen=SEEN)
    assert live.outcome.termination_reason == "IN_PROGRESS"
    assert live.outcome.state == "RUNNING"
    assert live.money.gpu_seconds == pytest.approx(2 * (60 - 5.3))
    assert live.lineage.last_step == 33
    assert live.time.ended_at is None


def test_write_off_is_charged_until_it_was_said_and_counts_as_its_reason() -> None:
    written = receipt(written_off())
    assert written.outcome.termination_reason == "AGENT_LOST"
    assert written.outcome.domain == "PLATFORM"
    assert written.money.gpu_seconds == pytest.approx(2 * 42.5)
    assert written.seconds.lost_seconds == pytest.approx(30.5)


def test_script_without_steps_loses_all_that_it_ran() -> None:
    seconds = receipt(script_started_over()).seconds
    assert seconds.startup_seconds == pytest.approx(3.0)
    assert seconds.productive_seconds == 0.0
    assert seconds.lost_seconds == pytest.approx(20.0)


def test_unknown_attempt_is_not_found() -> None:
    with pytest.raises(NotFound, match="no attempt 7"):
        receipt(killed_and_resumed(), 7)


OFFSETS = st.floats(min_value=-5, max_value=100, allow_nan=False).map(lambda s: START + timedelta(seconds=round(s, 6)))


@given(
    first=st.none() | OFFSETS,
    failed=st.none() | OFFSETS,
    ended=OFFSETS,
    keeps_all=st.booleans(),
    captures=st.lists(st.tuples(OFFSETS, st.floats(min_value=0, max_value=3), st.booleans()), max_size=4),
)
def test_parts_add_up_to_the_whole_whatever_the_clocks_say(
    first: datetime | None,
    failed: datetime | None,
    ended: datetime,
    keeps_all: bool,
    captures: list[tuple[datetime, float, bool]],
) -> None:
    reason = TerminationReason.COMPLETED if keeps_all else TerminationReason.UNKNOWN
    span = Span(placed_at=START, first_step_at=first, failed_at=failed, ended_at=ended, reason=reason)
    made = [(CheckpointStarted(started_at=at, blocked_seconds=s), kept) for at, s, kept in captures]
    seconds = split_seconds(span, [c for c, _ in made], [c for c, kept in made if kept])
    parts = (
        seconds.startup_seconds,
        seconds.productive_seconds,
        seconds.stall_seconds,
        seconds.lost_seconds,
        seconds.idle_seconds,
    )
    assert all(part >= 0 for part in parts)
    assert sum(parts) == pytest.approx(seconds.wall_seconds, abs=1e-6)


def test_times_are_utc() -> None:
    row = columns_of(receipt(killed_and_resumed()))
    assert all(value.tzinfo is UTC for value in row.values() if isinstance(value, datetime))


def test_each_attempt_shows_what_it_ran_with_itself() -> None:
    history = fold_run(RUN_ID, out_of_memory().facts_only)
    first, second = (columns_of(attempt_receipt(history, number)) for number in (1, 2))
    assert first["config_json"] == '{"batch_size":16,"steps":120}'
    assert second["config_json"] == '{"accumulation":2,"batch_size":8,"steps":120}'
    assert first["config_digest"] != second["config_digest"]
    assert (first["compute_class"], second["compute_class"]) == ("local-cpu-2x", "local-cpu-4x")
    assert second["cost"] == pytest.approx(second["gpu_seconds"] / 3600 * 0.72)
