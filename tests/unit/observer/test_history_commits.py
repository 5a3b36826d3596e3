"""Commits put together again from rows."""

from __future__ import annotations

from datetime import datetime, timedelta

from trackway_common.codec import encode_fact
from trackway_common.commit import Commit
from trackway_common.history.fold import fold_run
from trackway_common.testing.run_facts import RUN_ID, START
from trackway_common.testing.run_stories import killed_and_resumed
from trackway_observer.history.commits import commits_of


def event_rows(commit: Commit, appended_at: datetime) -> list[tuple[object, ...]]:
    head = (commit.term.epoch, commit.term.claim, commit.writer_id, commit.command_id, commit.causation_id)
    tail = (commit.correlation_id, commit.tenant, commit.actor, commit.occurred_at, commit.traceparent)
    return [
        (commit.stream, commit.commit_id, commit.first_seq + i, *head, *tail, encode_fact(fact).hex(), appended_at)
        for i, fact in enumerate(commit.facts)
    ]


def claim_row(commit: Commit, appended_at: datetime) -> tuple[object, ...]:
    term = commit.term
    return (commit.stream, term.epoch, term.claim, commit.writer_id, "127.0.0.1:7001", commit.occurred_at, appended_at)


def read_back(commits: list[Commit], *, clock_steps_back: bool = False) -> tuple[Commit, ...]:
    events, claims = [], []
    for i, commit in enumerate(commits):
        at = START + timedelta(seconds=-i if clock_steps_back else i)
        if commit.first_seq:
            events += event_rows(commit, at)
        elif not commit.stream.startswith("partitions/"):
            claims.append(claim_row(commit, at))
    return commits_of(sorted(events, key=lambda row: (row[0], row[2])), claims)


def test_commits_come_back_whole_and_in_the_order_of_the_log() -> None:
    written = killed_and_resumed().commits
    back = read_back(written)
    facts_only = [commit for commit in written if commit.first_seq]
    assert [commit for commit in back if commit.first_seq] == facts_only
    assert fold_run(RUN_ID, back) == fold_run(RUN_ID, written)


def test_a_broker_s_clock_that_steps_back_leaves_each_stream_in_order() -> None:
    written = killed_and_resumed().commits
    back = read_back(written, clock_steps_back=True)
    heads: dict[str, int] = {}
    for commit in back:
        if commit.first_seq:
            assert commit.first_seq == heads.get(commit.stream, 0) + 1
            heads[commit.stream] = commit.last_seq
    assert sorted(heads) == sorted({commit.stream for commit in written if commit.first_seq})
