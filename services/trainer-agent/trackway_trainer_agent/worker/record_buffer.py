"""A rank's records on disk until the agent has read them: facts for ever, telemetry within bounds.

One SQLite file, never synced: it keeps the actor's memory small and dies with the node, as the trainer does.
"""

from __future__ import annotations

import pickle
import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path

from trackway_trainer_agent.worker.records import LogLine, Numbered, Record, ResourceSample, StepMetrics

MAX_METRICS = 20_000
MAX_LOGS = 20_000
"""With lines of at most 4 KiB: 80 MiB at worst."""
METRICS, LOGS, FACTS = "metrics", "logs", "facts"
_THINNING = {
    METRICS: """
        DELETE FROM records WHERE number IN (
            SELECT number FROM (SELECT number, row_number() OVER (ORDER BY number) AS place
            FROM records WHERE kind = 'metrics') WHERE place % 2 = 0)""",
    LOGS: """
        DELETE FROM records WHERE number IN (
            SELECT number FROM records WHERE kind = 'logs' ORDER BY number LIMIT :stored / 4 + 1)""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Telemetry that nobody will read."""

    metrics: int = 0
    logs: int = 0


class RecordBuffer:
    """Numbered records with a reading cursor. Safe from several threads."""

    def __init__(self, path: Path, *, max_metrics: int = MAX_METRICS, max_logs: int = MAX_LOGS) -> None:
        self._lock = threading.Lock()
        self._limits = {METRICS: max_metrics, LOGS: max_logs}
        self._stored = {METRICS: 0, LOGS: 0, FACTS: 0}
        self._dropped = {METRICS: 0, LOGS: 0}
        self._newest = 0
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE records (number INTEGER PRIMARY KEY, kind TEXT, body BLOB)")
        self._database.execute("CREATE INDEX by_kind ON records (kind, number)")

    @property
    def newest(self) -> int:
        """Number of the last record."""
        return self._newest

    @property
    def dropped(self) -> Dropped:
        """What was thinned so far."""
        return Dropped(metrics=self._dropped[METRICS], logs=self._dropped[LOGS])

    def append(self, record: Record) -> None:
        """Store a record; makes room among telemetry when there is too much of it."""
        kind = _kind(record)
        with self._lock:
            self._newest += 1
            row = (self._newest, kind, pickle.dumps(record))
            self._database.execute("INSERT INTO records VALUES (?, ?, ?)", row)
            self._stored[kind] += 1
            if kind != FACTS and self._stored[kind] > self._limits[kind]:
                self._thin(kind)

    def read(self, after: int, limit: int) -> tuple[Numbered, ...]:
        """Records behind the cursor, oldest first; telemetry up to the cursor is forgotten."""
        with self._lock:
            self._forget(after)
            rows = self._database.execute(
                "SELECT number, body FROM records WHERE number > ? ORDER BY number LIMIT ?", (after, limit)
            )
            return tuple(Numbered(number=number, record=_restored(body)) for number, body in rows)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def _forget(self, after: int) -> None:
        for kind in (METRICS, LOGS):
            gone = self._database.execute("DELETE FROM records WHERE kind = ? AND number <= ?", (kind, after))
            self._stored[kind] -= gone.rowcount

    def _thin(self, kind: str) -> None:
        """Metrics and samples lose every second one, logs their oldest quarter."""
        gone = self._database.execute(_THINNING[kind], {"stored": self._stored[kind]}).rowcount
        self._stored[kind] -= gone
        self._dropped[kind] += gone


def _restored(body: bytes) -> Record:
    # Our own file in a private folder, written by this very process.
    record: Record = pickle.loads(body)  # noqa: S301
    return record


def _kind(record: Record) -> str:
    match record:
        case StepMetrics() | ResourceSample():
            return METRICS
        case LogLine():
            return LOGS
        case _:
            return FACTS
