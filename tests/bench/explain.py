"""How long `trackway explain RUN --log DIR` takes on a log of a million facts, as a whole process.

The log is synthetic: one real story of a killed and resumed run, told again and again under other run ids, exported
with the exporter that `trackway log export` uses.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from trackway.log_export import ExportOptions, export_log
from trackway_common.acceptance import partition_scope
from trackway_common.codec import encode_commit
from trackway_common.commit import Term
from trackway_common.errors import NotFound
from trackway_common.event_log import InMemoryEventLog, Record
from trackway_common.ids import uuid7
from trackway_common.partitioner import partition_of
from trackway_common.testing.run_facts import RUN_ID, START, RunFacts
from trackway_common.testing.run_stories import killed_and_resumed
from trackway_common.topics import FACT_PARTITIONS, RUNS, topic_of

from tests.bench.commands import seconds_of
from tests.bench.results import Results


def measure(results: Results, folder: Path, facts: int, count: int) -> None:
    """Export the log, check it, and explain runs drawn from it."""
    log = RepeatedStory(facts)
    copy = folder / "log"
    began = time.monotonic()
    made = export_log(lambda: log, copy, ExportOptions(), blob=no_blob)
    results.export_s = time.monotonic() - began
    results.export_facts, results.export_runs = log.facts, made.runs
    print(f"exported {log.facts:,} facts of {made.runs:,} runs in {results.export_s:.0f} s", flush=True)
    results.verify_s = seconds_of("log", "verify", str(copy))
    print(f"verified in {results.verify_s:.0f} s", flush=True)
    drawn = random.Random(5).sample(log.runs, count + 1)
    results.explain_s = [seconds_of("explain", f"{run}/1", "--log", str(copy)) for run in drawn][1:]


class RepeatedStory(InMemoryEventLog):
    """A log that holds one story under many run ids; records are made when they are read, so it takes no memory."""

    def __init__(self, facts: int) -> None:
        super().__init__()
        self._story = [c for c in killed_and_resumed().commits if not c.stream.startswith("partitions/")]
        each = sum(len(c.facts) for c in self._story)
        draw = random.Random(4)
        begin_ms = int(START.timestamp() * 1000)
        self.runs = [uuid7(lambda at=begin_ms + 40 * i: at * 1_000_000) for i in range(facts // each + 1)]
        draw.shuffle(self.runs)
        self.facts = each * len(self.runs)
        self._values = [(topic_of(c.stream), encode_commit(c)) for c in self._story]
        self._of: dict[int, list[str]] = {p: [] for p in range(FACT_PARTITIONS)}
        for run in self.runs:
            self._of[partition_of(run.encode(), FACT_PARTITIONS)].append(run)

    async def end_offsets(self, topic: str) -> dict[int, int]:
        per_run = sum(1 for name, _ in self._values if name == topic)
        claims = 1 if topic == RUNS else 0
        return {p: per_run * len(runs) + claims for p, runs in self._of.items()}

    async def tail(self, topic: str, positions: Mapping[int, int]) -> AsyncIterator[Sequence[Record]]:
        for partition in positions:
            offset, run = 0, ""
            values = [_claim(partition)] if topic == RUNS else []
            for run in self._of[partition]:
                values += [v.replace(RUN_ID.encode(), run.encode()) for name, v in self._values if name == topic]
                if len(values) > 500:
                    yield _records(topic, partition, offset, values, run)
                    offset += len(values)
                    values = []
            yield _records(topic, partition, offset, values, run)
        while True:
            await asyncio.sleep(1)
            yield ()


def _records(topic: str, partition: int, offset: int, values: Sequence[bytes], run: str) -> list[Record]:
    return [
        Record(
            topic=topic,
            partition=partition,
            offset=offset + i,
            key=run.encode(),
            value=value,
            headers=(("ce_type", b"trackway.commit.v1"),),
            appended_at=START + timedelta(milliseconds=offset + i),
        )
        for i, value in enumerate(values)
    ]


def _claim(partition: int) -> bytes:
    facts = RunFacts()
    facts.claim(partition_scope(partition), partition_scope(partition), Term(0, 1))
    return encode_commit(facts.commits[-1])


def no_blob(digest: str) -> bytes:
    """A store that has nothing."""
    raise NotFound(digest)
