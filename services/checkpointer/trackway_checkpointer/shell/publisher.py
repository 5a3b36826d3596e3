"""Mirrors commit logs as facts: every slot once, in order. The commit log is the outbox.

A slot is sent after the one before was acknowledged or read back. Two publishers may send the same slot: readers drop
the second.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from itertools import islice

from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.entries import Commit as Marker
from trackway_common.checkpoint.entries import LogEntry, Supersede
from trackway_common.checkpoint.layout import log_prefix
from trackway_common.codec import commit_headers, encode_commit
from trackway_common.commit import Commit
from trackway_common.errors import CorruptLog, NotFound
from trackway_common.event_log import EventLog
from trackway_common.fact_reader import FactReader
from trackway_common.ids import checkpoint_stream, root_key
from trackway_common.object_store import ObjectStore
from trackway_common.partitioner import partition_of
from trackway_common.topics import CHECKPOINTS

from trackway_checkpointer.domain.facts import commit_of

BATCH = 100
"""Entries read ahead of sending: bounds memory when a long log is published for the first time."""


class Publisher:
    """Publishes what the store's commit logs hold and the topic does not."""

    def __init__(self, event_log: EventLog, store: ObjectStore) -> None:
        self._log = event_log
        self._store = store
        self._reader = FactReader(event_log, CHECKPOINTS)
        self._sent: dict[str, int] = {}
        self._traces: dict[str, str] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @property
    def caught_up(self) -> asyncio.Event:
        """Set once what was published before is known."""
        return self._reader.caught_up

    async def follow(self) -> None:
        """Read the topic for ever, to know what others published."""
        async for batch in self._reader.read():
            for judged in batch:
                if judged.accepted and judged.commit.traceparent:
                    self._traces.setdefault(judged.commit.stream, judged.commit.traceparent)

    def published(self, run_id: str) -> int:
        """Last slot of the run that is known to be in the topic."""
        return max(self._sent.get(run_id, 0), self._reader.acceptance.head(checkpoint_stream(run_id)))

    async def publish(self, run_id: str, traceparent: str = "") -> int:
        """Send every slot that is missing from the topic; return how many were sent.

        Args:
            run_id: the run whose commit log it is.
            traceparent: of who asked; without one, the trace that the run's earlier slots were published in.

        Raises:
            Unavailable: the log or the store is away; call again.
            CorruptLog: the topic knows slots that the commit log no longer holds.
        """
        async with self._turns[run_id]:
            trace = traceparent or self._traces.get(checkpoint_stream(run_id), "")
            if trace:
                self._traces.setdefault(checkpoint_stream(run_id), trace)
            sent = 0
            while True:
                commits = await asyncio.to_thread(self._unpublished, run_id, self.published(run_id), trace)
                for commit in commits:
                    await self._send(run_id, commit)
                sent += len(commits)
                if len(commits) < BATCH:
                    return sent

    async def _send(self, run_id: str, commit: Commit) -> None:
        if commit.first_seq <= self.published(run_id):
            return  # Another checkpointer sent it meanwhile.
        key = root_key(commit.stream)
        partition = partition_of(key, await self._log.partition_count(CHECKPOINTS))
        await self._log.append(CHECKPOINTS, partition, key, encode_commit(commit), commit_headers(commit))
        self._sent[run_id] = commit.first_seq

    def _unpublished(self, run_id: str, after: int, traceparent: str) -> list[Commit]:
        log = CommitLog(self._store, run_id, writer="", now_ms=lambda: 0)
        _refuse_rollback(log, after)
        entries = list(islice(log.entries(after=after), BATCH))
        if entries:
            # A reader of the fact must find the entry, also after a power cut here.
            self._store.settle(log_prefix(run_id))
            self._store.anchor(log_prefix(run_id))
        return [
            commit_of(run_id, entry, superseded=_superseded(log, entry), traceparent=traceparent) for entry in entries
        ]


def _refuse_rollback(log: CommitLog, published: int) -> None:
    try:
        if published:
            log.entry(published)
    except NotFound as error:
        raise CorruptLog(
            f"run {log.run_id}: slot {published} of its commit log was published and is not in the store any more; "
            "the store lost data or was rolled back: restore it before this run goes on"
        ) from error


def _superseded(log: CommitLog, entry: LogEntry) -> Marker | None:
    if not isinstance(entry.body, Supersede):
        return None
    body = log.entry(entry.body.commit_slot).body
    return body if isinstance(body, Marker) else None
