"""The merged history of a run: order, cursors, phases."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.acceptance import Accepted
from trackway_common.commit import Commit, Term
from trackway_common.errors import CommandRejected
from trackway_common.event_log import Record
from trackway_common.events import AttemptStopping, RunPhase
from trackway_common.fact_reader import Judged
from trackway_common.topics import ATTEMPTS, FACT_TOPICS, RUNS
from trackway_scheduler.shell.journal import Cursor, Journal, parse_cursor

from tests.unit.scheduler.builders import NOW, RUN, later, placed, submitted


def judged(topic: str, offset: int, *facts, at: datetime = NOW) -> Judged:
    stream = f"runs/{RUN}" if topic == RUNS else f"{topic.split('.')[1]}/{RUN}/1"
    commit = Commit(
        commit_id="c", stream=stream, first_seq=offset + 1, term=Term(0, 1), writer_id="w", command_id="",
        causation_id="", correlation_id="", tenant="", actor="", occurred_at=at, traceparent="", facts=facts,
    )  # fmt: skip
    record = Record(topic=topic, partition=0, offset=offset, key=b"", value=b"", headers=(), appended_at=at)
    return Judged(record=record, commit=commit, verdict=Accepted())


def stopping(text: str) -> AttemptStopping:
    return AttemptStopping(why=text, stopping_at=NOW)


def test_topics_are_merged_by_the_brokers_time():
    journal = Journal()
    journal.add(RUN, judged(ATTEMPTS, 0, stopping("late"), at=later(9)))
    journal.add(RUN, judged(RUNS, 0, *submitted(), at=later(1)))
    kinds = [type(entry.fact).__name__ for entry in journal.behind(RUN, Cursor())]
    assert kinds == ["RunSubmitted", "RunQueued", "AttemptStopping"]


def test_a_clock_that_goes_back_reorders_nothing_within_a_topic():
    journal = Journal()
    journal.add(RUN, judged(ATTEMPTS, 0, stopping("a"), at=later(9)))
    journal.add(RUN, judged(ATTEMPTS, 1, stopping("b"), at=later(1)))
    assert [entry.fact.why for entry in journal.behind(RUN, Cursor())] == ["a", "b"]


def test_phases_follow_the_runs_own_facts():
    journal = Journal()
    journal.add(RUN, judged(RUNS, 0, *submitted()))
    journal.add(RUN, judged(RUNS, 1, placed()))
    entries = journal.behind(RUN, Cursor())
    assert [entry.phase for entry in entries] == [RunPhase.SUBMITTED, RunPhase.QUEUED, RunPhase.RUNNING]
    cursor = Cursor().after(entries[1].topic, entries[1].position)
    assert journal.phase_at(RUN, cursor) is RunPhase.QUEUED
    assert journal.phase_at(RUN, Cursor()) is RunPhase.UNSPECIFIED


def test_a_waiting_watcher_is_woken_by_the_next_commit():
    journal = Journal()
    pulse = journal.pulse(RUN)
    journal.add(RUN, judged(RUNS, 0, *submitted()))
    assert pulse.is_set()
    assert not journal.pulse(RUN).is_set()


commits = st.lists(st.tuples(st.sampled_from(FACT_TOPICS), st.integers(0, 9), st.integers(1, 3)), max_size=20)


@given(commits, st.integers(0, 60))
def test_whatever_the_cut_the_rest_is_exactly_what_was_not_seen(script, cut):
    journal, offsets = Journal(), dict.fromkeys(FACT_TOPICS, 0)
    for topic, second, count in script:
        facts = tuple(stopping(f"{topic}/{offsets[topic]}/{i}") for i in range(count))
        journal.add(RUN, judged(topic, offsets[topic], *facts, at=later(second)))
        offsets[topic] += 1
    everything = journal.behind(RUN, Cursor())
    cursor = Cursor()
    for entry in everything[:cut]:
        cursor = cursor.after(entry.topic, entry.position)
    assert journal.behind(RUN, parse_cursor(str(cursor))) == everything[cut:]


@pytest.mark.parametrize("text", ["x", "1.2", "1.2-3", "a.b-1.1-1.1-1.1", "1.1-1.1-1.1-1.1-1.1"])
def test_what_is_no_cursor_is_refused(text):
    with pytest.raises(CommandRejected):
        parse_cursor(text)
