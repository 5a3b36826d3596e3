"""The judges that the end-to-end tests hold the log against find what is planted for them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trackway_common import events as e
from trackway_common.acceptance import Acceptance
from trackway_common.codec import commit_headers, encode_commit
from trackway_common.commit import Commit, Term
from trackway_common.event_log import Record
from trackway_common.events import TerminationReason
from trackway_common.fact_reader import Judged
from trackway_common.testing.run_facts import RunFacts
from trackway_common.testing.run_steps import committed, ended, placed, started, submitted
from trackway_common.topics import FACT_TOPICS, RUNS, topic_of

from tests.support.facts import accepted, check_no_gap_no_repeat
from tests.support.raw_records import check_records, place


@pytest.fixture
def facts() -> RunFacts:
    """A run with one attempt, which committed a checkpoint and was killed."""
    made = started(placed(submitted(RunFacts()), 1), 1)
    committed(made, 1, 10, 2)
    ended(made.after(5), 1, reason=TerminationReason.UNKNOWN_KILL)
    return made


def judged(commits: list[Commit]) -> list[Judged]:
    """Records of these commits where they belong, as readers judge them."""
    acceptances = {topic: Acceptance(topic) for topic in FACT_TOPICS}
    return [record(commit, acceptances, offset) for offset, commit in enumerate(commits)]


def record(commit: Commit, acceptances: dict[str, Acceptance], offset: int) -> Judged:
    topic = RUNS if commit.stream.startswith("partitions/") else topic_of(commit.stream)
    partition, key = place(commit)
    sent = Record(
        topic=topic,
        partition=partition,
        offset=offset,
        key=key,
        value=encode_commit(commit),
        headers=commit_headers(commit),
        appended_at=commit.occurred_at,
    )
    return Judged(record=sent, commit=commit, verdict=acceptances[topic].judge(partition, commit))


def last_of_attempt(facts: RunFacts) -> Commit:
    return [commit for commit in facts.facts_only if commit.stream.startswith("attempts/")][-1]


def test_a_sound_log_passes(facts):
    records = judged(facts.commits)
    check_records(records)
    check_no_gap_no_repeat(accepted(records))


def test_an_attempt_that_ends_twice_is_found(facts):
    [end] = [fact for fact in last_of_attempt(facts).facts if isinstance(fact, e.AttemptEnded)]
    facts.attempt(1, end)
    with pytest.raises(AssertionError, match="AttemptEnded"):
        check_no_gap_no_repeat(accepted(judged(facts.commits)))


def test_a_checkpoint_that_is_committed_in_two_slots_is_found(facts):
    [slot] = [f for commit in facts.commits for f in commit.facts if isinstance(f, e.CheckpointCommitted)]
    facts.checkpoint(replace(slot, checkpoint=replace(slot.checkpoint, slot=3, nonce="another")))
    with pytest.raises(AssertionError, match="CheckpointCommitted"):
        check_no_gap_no_repeat(accepted(judged(facts.commits)))


def test_an_owner_that_uses_a_sequence_twice_is_found_although_readers_refuse_the_second(facts):
    again = replace(last_of_attempt(facts), commit_id="again")
    records = judged([*facts.commits, again])
    check_no_gap_no_repeat(accepted(records))
    with pytest.raises(AssertionError, match="attempts/"):
        check_records(records)


def test_a_zombie_may_write_what_nobody_takes(facts):
    late = replace(last_of_attempt(facts), commit_id="late", first_seq=9)
    facts.claim(late.stream, late.stream, Term(1, 2))
    check_records(judged([*facts.commits, replace(late, term=Term(0, 9))]))


def test_a_slot_that_is_sent_again_with_other_facts_is_found(facts):
    slot = next(commit for commit in facts.commits if commit.stream.startswith("checkpoints/"))
    check_records(judged([*facts.commits, slot]))
    with pytest.raises(AssertionError, match="checkpoints/"):
        check_records(judged([*facts.commits, replace(slot, facts=(e.FenceRaised(epoch=99),))]))


@pytest.mark.parametrize("wrong", ["partition", "key", "headers"])
def test_a_record_in_the_wrong_place_or_with_another_trace_is_found(facts, wrong):
    *before, last = judged(facts.commits)
    other = {
        "partition": {"partition": last.record.partition + 1},
        "key": {"key": b"another run"},
        "headers": {"headers": commit_headers(replace(last.commit, traceparent="00-1-1-01"))},
    }
    with pytest.raises(AssertionError, match="attempts/"):
        check_records([*before, replace(last, record=replace(last.record, **other[wrong]))])
