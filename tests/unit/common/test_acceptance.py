"""The acceptance rule, case by case and as laws over random histories."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trackway_common.acceptance import Acceptance, Accepted, Claimed, Duplicate, Rejected
from trackway_common.commit import Commit, Term
from trackway_common.events import CancelRequested, FenceRaised, OwnershipClaimed
from trackway_common.topics import ATTEMPTS, CHECKPOINTS, RUNS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = "runs/a"


def commit(stream: str, seq: int, term: Term, *, facts: int = 1, writer: str = "w") -> Commit:
    made = tuple(CancelRequested(reason="", actor="", requested_at=NOW) for _ in range(facts))
    return _commit(stream, seq, term, made, writer)


def claim(scope: str, term: Term, writer: str = "w") -> Commit:
    return _commit(scope, 0, term, (OwnershipClaimed(endpoint="here"),), writer)


def slot(stream: str, seq: int) -> Commit:
    return _commit(stream, seq, Term(0, 0), (FenceRaised(epoch=1),), "any")


def _commit(stream, seq, term, facts, writer) -> Commit:
    return Commit(
        commit_id=f"{writer}-{stream}-{seq}-{term}",
        stream=stream,
        first_seq=seq,
        term=term,
        writer_id=writer,
        command_id="",
        causation_id="",
        correlation_id="",
        tenant="",
        actor="",
        occurred_at=NOW,
        traceparent="",
        facts=facts,
    )


def test_a_commit_before_any_claim_is_rejected():
    verdict = Acceptance(RUNS).judge(0, commit(RUN, 1, Term(0, 0)))
    assert isinstance(verdict, Rejected)


def test_the_owner_continues_its_streams():
    rule = Acceptance(RUNS)
    assert rule.judge(0, claim("partitions/0", Term(0, 1))) == Claimed("partitions/0")
    assert rule.judge(0, commit(RUN, 1, Term(0, 1), facts=2)) == Accepted()
    assert rule.judge(0, commit(RUN, 3, Term(0, 1))) == Accepted()
    assert rule.head(RUN) == 3


@pytest.mark.parametrize("seq", [0, 1, 3, 99])
def test_a_gap_or_a_repeat_is_rejected(seq):
    rule = Acceptance(RUNS)
    rule.judge(0, claim("partitions/0", Term(0, 1)))
    rule.judge(0, commit(RUN, 1, Term(0, 1)))
    assert isinstance(rule.judge(0, commit(RUN, seq, Term(0, 1))), Rejected)
    assert rule.head(RUN) == 1


def test_a_zombie_is_rejected_after_a_newer_claim():
    rule = Acceptance(RUNS)
    rule.judge(0, claim("partitions/0", Term(0, 1), "old"))
    rule.judge(0, claim("partitions/0", Term(0, 2), "new"))
    assert isinstance(rule.judge(0, commit(RUN, 1, Term(0, 1), writer="old")), Rejected)
    assert rule.judge(0, commit(RUN, 1, Term(0, 2), writer="new")) == Accepted()


def test_an_equal_or_lower_claim_is_rejected():
    rule = Acceptance(RUNS)
    rule.judge(0, claim("partitions/0", Term(0, 2)))
    assert isinstance(rule.judge(0, claim("partitions/0", Term(0, 2), "other")), Rejected)
    assert isinstance(rule.judge(0, claim("partitions/0", Term(0, 1), "other")), Rejected)


def test_epoch_outranks_claim():
    rule = Acceptance(ATTEMPTS)
    rule.judge(0, claim("attempts/a/1", Term(1, 9)))
    assert rule.judge(0, claim("attempts/a/1", Term(2, 1))) == Claimed("attempts/a/1")


def test_a_claim_covers_its_own_partition_only():
    rule = Acceptance(RUNS)
    rule.judge(0, claim("partitions/0", Term(0, 1)))
    assert isinstance(rule.judge(1, commit("runs/b", 1, Term(0, 1))), Rejected)
    assert isinstance(rule.judge(1, claim("partitions/0", Term(0, 2))), Rejected)


def test_a_claim_mixed_with_facts_is_rejected():
    mixed = _commit(
        "partitions/0", 0, Term(0, 1), (OwnershipClaimed(endpoint=""), CancelRequested(requested_at=NOW)), "w"
    )
    assert isinstance(Acceptance(RUNS).judge(0, mixed), Rejected)


def test_a_slot_again_is_a_duplicate_and_a_slot_ahead_is_rejected():
    rule = Acceptance(CHECKPOINTS)
    assert rule.judge(0, slot("checkpoints/a", 1)) == Accepted()
    assert rule.judge(0, slot("checkpoints/a", 1)) == Duplicate()
    assert isinstance(rule.judge(0, slot("checkpoints/a", 3)), Rejected)
    assert rule.judge(0, slot("checkpoints/a", 2)) == Accepted()


def test_state_can_be_carried_over():
    rule = Acceptance(RUNS, terms={"partitions/0": Term(0, 4)}, heads={RUN: 7})
    assert rule.judge(0, commit(RUN, 8, Term(0, 4))) == Accepted()


_records = st.lists(
    st.one_of(
        st.builds(lambda n, w: claim("partitions/0", Term(0, n), w), st.integers(1, 5), st.sampled_from("ab")),
        st.builds(
            lambda s, q, n, f: commit(f"runs/{s}", q, Term(0, n), facts=f),
            st.sampled_from("xy"),
            st.integers(0, 6),
            st.integers(0, 5),
            st.integers(1, 3),
        ),
    ),
    max_size=60,
)


@given(_records)
def test_accepted_sequences_have_no_gap_and_no_repeat(records):
    rule, taken = Acceptance(RUNS), {}
    for record in records:
        if isinstance(rule.judge(0, record), Accepted):
            taken.setdefault(record.stream, []).extend(range(record.first_seq, record.last_seq + 1))
    for sequences in taken.values():
        assert sequences == list(range(1, len(sequences) + 1))


@given(_records)
def test_accepted_terms_never_go_back(records):
    rule = Acceptance(RUNS)
    terms = [record.term for record in records if not isinstance(rule.judge(0, record), Rejected)]
    assert terms == sorted(terms)


@given(_records, st.integers(0, 60))
def test_every_reader_agrees_wherever_it_was_restarted(records, cut):
    whole, first = Acceptance(RUNS), Acceptance(RUNS)
    expected = [whole.judge(0, record) for record in records]
    before = [first.judge(0, record) for record in records[:cut]]
    heads = {stream: first.head(stream) for stream in ("runs/x", "runs/y")}
    resumed = Acceptance(RUNS, terms={"partitions/0": first.term("partitions/0")}, heads=heads)
    assert before + [resumed.judge(0, record) for record in records[cut:]] == expected
