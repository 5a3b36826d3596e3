"""What holds of every record of the fact topics, also of those that readers refuse."""

from __future__ import annotations

from collections.abc import Sequence

from trackway_common.acceptance import Accepted, Duplicate, Rejected
from trackway_common.codec import commit_headers
from trackway_common.commit import Commit, Term
from trackway_common.fact_reader import Judged
from trackway_common.ids import root_key
from trackway_common.partitioner import partition_of
from trackway_common.topics import CHECKPOINTS, FACT_PARTITIONS


def check_records(records: Sequence[Judged]) -> None:
    """Assert where records lie, what they were sent with, in which order, and that only zombies were refused."""
    for judged in records:
        assert (judged.record.partition, judged.record.key) == place(judged.commit), judged.commit.stream
        assert judged.record.headers == commit_headers(judged.commit), judged.commit.stream
    owned = [judged.commit for judged in records if judged.record.topic != CHECKPOINTS and judged.commit.first_seq]
    check_sequences_in_terms(owned)
    check_duplicates(records)
    refused = {judged.commit.stream: judged.verdict for judged in records if isinstance(judged.verdict, Rejected)}
    strange = {stream: why for stream, why in refused.items() if not why.reason.startswith(("term ", "claim "))}
    assert strange == {}, strange


def place(commit: Commit) -> tuple[int, bytes]:
    """Partition and key that a commit belongs to; of a partition's claim, the partition that it names."""
    kind, _, rest = commit.stream.partition("/")
    if kind == "partitions":
        return int(rest), commit.stream.encode()
    return partition_of(root_key(commit.stream), FACT_PARTITIONS), root_key(commit.stream)


def check_sequences_in_terms(commits: Sequence[Commit]) -> None:
    """Assert that no writer used a sequence twice or left one out under one term, whether readers took it or not."""
    heads: dict[tuple[str, Term], int] = {}
    for commit in commits:
        head = heads.get((commit.stream, commit.term))
        assert head is None or commit.first_seq == head + 1, (commit.stream, commit.term, head, commit.first_seq)
        heads[commit.stream, commit.term] = commit.last_seq


def check_duplicates(records: Sequence[Judged]) -> None:
    """Assert that a slot that was sent again says what it said before."""
    said: dict[tuple[str, int], tuple[str, object]] = {}
    for judged in records:
        commit = judged.commit
        says = (commit.commit_id, commit.facts)
        match judged.verdict:
            case Accepted():
                said[commit.stream, commit.first_seq] = says
            case Duplicate():
                assert said[commit.stream, commit.first_seq] == says, (commit.stream, commit.first_seq)
