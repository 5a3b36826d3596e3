"""The index of a copied log: where each stream's records lie, and how each run stood."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trackway_common.codec import CorruptRecord

_SCHEMA = """
create table streams (id integer primary key, root text not null, stream text not null unique);
create table records (
  stream integer not null, topic text not null, partition integer not null, position integer not null,
  size integer not null, offset integer not null, standing text not null
);
create table runs (
  run_id text primary key, project text not null, model_family text not null, compute_class text not null,
  pool text not null, phase text not null, phase_at_us integer not null, attempt integer not null
) without rowid;
create table heartbeats (
  run_id text not null, attempt integer not null, at_ms integer not null, last_step integer not null,
  primary key (run_id, attempt)
) without rowid;
"""
_INDEXES = """
create index streams_by_root on streams (root);
create index records_by_stream on records (stream);
create index runs_by_phase on runs (phase, pool);
"""
_BATCH = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Where one record lies."""

    topic: str
    partition: int
    position: int
    size: int
    offset: int
    standing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """A run as it stood when the log was copied."""

    run_id: str
    project: str
    model_family: str
    compute_class: str
    pool: str
    phase: str
    phase_at: datetime
    attempt: int
    """The newest that was placed or refused; 0 before the first."""


class IndexWriter:
    """Fills a new index; nothing else has it open."""

    def __init__(self, path: Path) -> None:
        # autocommit is off: everything up to close() is one transaction, which nobody reads before.
        self._database = sqlite3.connect(path)
        self._database.executescript("pragma journal_mode = off; pragma synchronous = off;" + _SCHEMA)
        self._streams: dict[str, int] = {}
        self._waiting: list[tuple[object, ...]] = []

    def add(self, root: str, stream: str, entry: Entry) -> None:
        """Note one record."""
        place = (entry.topic, entry.partition, entry.position, entry.size, entry.offset, entry.standing)
        self._waiting.append((self._stream(root, stream), *place))
        if len(self._waiting) >= _BATCH:
            self._flush()

    def close(self, runs: Iterable[RunLine], heartbeats: Iterable[tuple[str, int, int, int]]) -> None:
        """Write what is left and build the look-ups."""
        self._flush()
        self._database.executemany("insert into runs values (?, ?, ?, ?, ?, ?, ?, ?)", (_run_row(run) for run in runs))
        self._database.executemany("insert into heartbeats values (?, ?, ?, ?)", heartbeats)
        self._database.executescript(_INDEXES)
        self._database.commit()
        self._database.close()

    def _stream(self, root: str, stream: str) -> int:
        if stream not in self._streams:
            self._streams[stream] = len(self._streams) + 1
            self._database.execute("insert into streams values (?, ?, ?)", (self._streams[stream], root, stream))
        return self._streams[stream]

    def _flush(self) -> None:
        self._database.executemany("insert into records values (?, ?, ?, ?, ?, ?, ?)", self._waiting)
        self._waiting.clear()


class IndexReader:
    """Looks things up. Every method raises CorruptRecord when the file is damaged."""

    def __init__(self, path: Path) -> None:
        with _damage_told():
            self._database = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)

    def close(self) -> None:
        self._database.close()

    def entries(self, root: str) -> list[Entry]:
        """Every record of one root id, in the order of each partition."""
        return [
            _entry(row)
            for row in self._rows(
                "select topic, partition, position, size, offset, standing from records "
                "where stream in (select id from streams where root = ?) order by topic, partition, offset",
                (root,),
            )
        ]

    def partition(self, topic: str, partition: int) -> Iterator[tuple[str, Entry]]:
        """Every record of one partition with its stream, in order."""
        query = (
            "select streams.stream, topic, partition, position, size, offset, standing from records "
            "join streams on streams.id = records.stream where topic = ? and partition = ? order by position"
        )
        for stream, *row in self._rows(query, (topic, partition)):
            yield str(stream), _entry(row)

    def runs_beginning(self, beginning: str, limit: int = 3) -> list[str]:
        """Ids of runs that begin so."""
        query = (
            "select distinct root from streams where root >= ? and root < ? and (stream like 'runs/%' "
            "or stream like 'attempts/%' or stream like 'checkpoints/%') order by root limit ?"
        )
        return [row[0] for row in self._rows(query, (beginning, beginning + "\U0010ffff", limit))]

    def runs(self) -> list[RunLine]:
        """Every run, oldest first."""
        return [_run_line(row) for row in self._rows("select * from runs order by run_id", ())]

    def queued_before(self, pool: str, run_id: str) -> int:
        """Runs of a pool that were submitted earlier, by the time in their ids, and still waited."""
        query = "select count(*) from runs where phase = 'QUEUED' and pool = ? and run_id < ?"
        return int(self._rows(query, (pool, run_id))[0][0])

    def holding(self, pool: str, limit: int = 8) -> list[tuple[str, int]]:
        """Runs and attempts that held a pool."""
        query = (
            "select run_id, attempt from runs where phase = 'RUNNING' and pool = ? order by phase_at_us, run_id limit ?"
        )
        return [(run_id, attempt) for run_id, attempt in self._rows(query, (pool, limit))]

    def heartbeats(self, run_id: str) -> list[tuple[int, int, int]]:
        """Attempt, time in milliseconds and last step of what was heard last of each attempt."""
        query = "select attempt, at_ms, last_step from heartbeats where run_id = ?"
        return [(attempt, at_ms, step) for attempt, at_ms, step in self._rows(query, (run_id,))]

    def _rows(self, query: str, parameters: tuple[object, ...]) -> list[Any]:
        with _damage_told():
            return self._database.execute(query, parameters).fetchall()


@contextmanager
def _damage_told() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise CorruptRecord(
            f"index.sqlite can't be read ({error}); `trackway log verify` says what is damaged"
        ) from error


def _entry(row: Sequence[Any]) -> Entry:
    topic, partition, position, size, offset, standing = row
    return Entry(topic=topic, partition=partition, position=position, size=size, offset=offset, standing=standing)


def _run_row(run: RunLine) -> tuple[object, ...]:
    named = (run.run_id, run.project, run.model_family, run.compute_class, run.pool)
    return (*named, str(run.phase), _microseconds(run.phase_at), run.attempt)


def _run_line(row: Sequence[Any]) -> RunLine:
    run_id, project, model_family, compute_class, pool, phase, at_us, attempt = row
    return RunLine(
        run_id=run_id,
        project=project,
        model_family=model_family,
        compute_class=compute_class,
        pool=pool,
        phase=phase,
        phase_at=datetime.fromtimestamp(at_us / 1e6, UTC),
        attempt=attempt,
    )


def _microseconds(at: datetime) -> int:
    return round(at.timestamp() * 1e6)
