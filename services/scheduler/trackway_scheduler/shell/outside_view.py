"""Tails attempts, checkpoints and evaluations, and keeps what they say about each run."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable

from trackway_common.commit import UnknownFact
from trackway_common.event_log import EventLog
from trackway_common.fact_reader import FactReader, Judged
from trackway_common.topics import ATTEMPTS, CHECKPOINTS, EVALUATIONS

from trackway_scheduler.domain.outside import Cause, Outside, note

log = logging.getLogger(__name__)

TOPICS = (ATTEMPTS, CHECKPOINTS, EVALUATIONS)


class OutsideView:
    """Folds what others wrote; never writes."""

    def __init__(self, event_log: EventLog, on_commit: Callable[[str, Judged], None]) -> None:
        """``on_commit`` is called with the run's id and every accepted commit, after it was folded."""
        self._readers = tuple(FactReader(event_log, topic) for topic in TOPICS)
        self._on_commit = on_commit
        self._runs: defaultdict[str, Outside] = defaultdict(Outside)

    async def run(self) -> None:
        """Tail for ever; belongs in the service's task group."""
        async with asyncio.TaskGroup() as tasks:
            for reader in self._readers:
                tasks.create_task(self._tail(reader))

    async def caught_up(self) -> None:
        """Wait until everything that was there at the start is folded."""
        for reader in self._readers:
            await reader.caught_up.wait()

    def of(self, run_id: str) -> Outside:
        """What is known about one run."""
        return self._runs[run_id]

    async def _tail(self, reader: FactReader) -> None:
        async for batch in reader.read():
            for judged in batch:
                if judged.accepted:
                    self._take(judged)

    def _take(self, judged: Judged) -> None:
        commit = judged.commit
        run_id = commit.stream.split("/")[1]
        cause = Cause(commit_id=commit.commit_id, traceparent=commit.traceparent)
        for fact in commit.facts:
            if isinstance(fact, UnknownFact):
                log.warning("unknown fact passed over", extra={"stream": commit.stream, "number": fact.number})
            else:
                self._runs[run_id] = note(self._runs[run_id], fact, cause)
        self._on_commit(run_id, judged)
