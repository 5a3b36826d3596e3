"""Read the log directly, as a judge that trusts no service."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence

from trackway.client.resources import RunFact
from trackway_common.acceptance import Accepted
from trackway_common.codec import fact_name
from trackway_common.commit import Commit
from trackway_common.fact_reader import FactReader, Judged
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.settings import KafkaSettings
from trackway_common.topics import FACT_TOPICS

from tests.support.meanings import repeated


def accepted_commits(bootstrap: str) -> list[Commit]:
    """Every commit of every fact topic that counts, in order within its partition."""
    return accepted(records(bootstrap))


def accepted(judged: Sequence[Judged]) -> list[Commit]:
    """The commits that count."""
    return [each.commit for each in judged if isinstance(each.verdict, Accepted)]


def records(bootstrap: str) -> list[Judged]:
    """Every record of every fact topic, refused ones too, in order within its partition; poison is left out."""
    return asyncio.run(_read_all(bootstrap))


def check_told_facts_are_there_once(commits: list[Commit], told: list[RunFact]) -> None:
    """Assert that each fact a client was told is in the log, once, under the sequence it was told with."""
    there = Counter(
        (commit.stream, commit.first_seq + i, fact_name(fact))
        for commit in commits
        for i, fact in enumerate(commit.facts)
    )
    missing_or_doubled = [fact for fact in told if there[fact.stream, fact.sequence, fact.fact] != 1]
    assert missing_or_doubled == []
    assert len({(fact.stream, fact.sequence) for fact in told}) == len(told), "the client was told a fact twice"


def check_no_gap_no_repeat(commits: list[Commit]) -> None:
    """Assert that each stream's sequences are 1, 2, 3 … and that nothing took effect, or happened, twice."""
    sequences: defaultdict[str, list[int]] = defaultdict(list)
    commands: Counter[tuple[str, str]] = Counter()
    for commit in commits:
        sequences[commit.stream].extend(range(commit.first_seq, commit.last_seq + 1))
        if commit.command_id:
            commands[commit.stream, commit.command_id] += 1
    for stream, numbers in sequences.items():
        assert numbers == list(range(1, len(numbers) + 1)), stream
    assert [command for command, count in commands.items() if count > 1] == []
    twice = repeated(commits)
    assert twice == [], twice


async def _read_all(bootstrap: str) -> list[Judged]:
    log = KafkaEventLog(KafkaSettings(bootstrap=bootstrap))
    try:
        return [judged for topic in FACT_TOPICS for judged in await _read(log, topic)]
    finally:
        await log.close()


async def _read(log: KafkaEventLog, topic: str) -> list[Judged]:
    reader, found = FactReader(log, topic), []
    async for batch in reader.read():
        found.extend(batch)
        if reader.caught_up.is_set():
            return found
    raise AssertionError("a tail never ends")
