"""Every fact of every run in one order, for those who watch.

Topics have no common order, so facts are merged by the broker's time and a cursor holds one position per topic:
whatever the merge looks like after a restart, nothing behind a cursor is left out and nothing comes twice.
"""

from __future__ import annotations

import asyncio
import bisect
import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime

from trackway_common.commit import UnknownFact
from trackway_common.errors import CommandRejected, FieldViolation
from trackway_common.events import Fact, RunPhase
from trackway_common.fact_reader import Judged
from trackway_common.topics import FACT_TOPICS, RUNS

from trackway_scheduler.domain.evolve import phase_after

Position = tuple[int, int]
"""Offset of the record and index of the fact in it."""
_START: Position = (-1, -1)
_OWN = FACT_TOPICS.index(RUNS)
_ZERO = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a watcher has read, per topic in the order of FACT_TOPICS."""

    positions: tuple[Position, ...] = (_START,) * len(FACT_TOPICS)

    def __str__(self) -> str:
        return "-".join("" if position == _START else f"{position[0]}.{position[1]}" for position in self.positions)

    def after(self, topic: int, position: Position) -> Cursor:
        """The cursor once that fact was seen."""
        return Cursor((*self.positions[:topic], position, *self.positions[topic + 1 :]))


def parse_cursor(text: str) -> Cursor:
    """Read a cursor; empty is the start.

    Raises:
        CommandRejected: it is none of ours.
    """
    if not text:
        return Cursor()
    try:
        positions = tuple(_position(part) for part in text.split("-"))
    except ValueError:
        positions = ()
    if len(positions) != len(FACT_TOPICS):
        description = f"{text!r} is no cursor; send back the one of a message, or none to start at the first fact"
        raise CommandRejected(description, violations=(FieldViolation(field="cursor", description=description),))
    return Cursor(positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One fact of a run."""

    topic: int
    position: Position
    at: datetime
    """Broker's time, never before an earlier one of the same topic."""
    stream: str
    sequence: int
    occurred_at: datetime
    fact: Fact | UnknownFact
    phase: RunPhase
    """The run's, after this fact; UNSPECIFIED for facts of others."""


@dataclass(slots=True)
class _RunJournal:
    entries: tuple[list[Entry], ...] = field(default_factory=lambda: tuple([] for _ in FACT_TOPICS))
    pulse: asyncio.Event = field(default_factory=asyncio.Event)


class Journal:
    """Keeps all entries in memory; rebuilt from the log at start."""

    def __init__(self) -> None:
        self._runs: defaultdict[str, _RunJournal] = defaultdict(_RunJournal)

    def add(self, run_id: str, judged: Judged) -> None:
        """Add an accepted commit of the run, in the order of its topic."""
        run = self._runs[run_id]
        topic = FACT_TOPICS.index(judged.record.topic)
        entries = run.entries[topic]
        phase = entries[-1].phase if entries else RunPhase.UNSPECIFIED
        at = max(entries[-1].at if entries else _ZERO, judged.record.appended_at)
        for i, fact in enumerate(judged.commit.facts):
            if topic == _OWN and not isinstance(fact, UnknownFact):
                phase = phase_after(phase, fact)
            entries.append(
                Entry(
                    topic=topic,
                    position=(judged.record.offset, i),
                    at=at,
                    stream=judged.commit.stream,
                    sequence=judged.commit.first_seq + i,
                    occurred_at=judged.commit.occurred_at,
                    fact=fact,
                    phase=phase,
                )
            )
        pulse, run.pulse = run.pulse, asyncio.Event()
        pulse.set()

    def behind(self, run_id: str, cursor: Cursor) -> list[Entry]:
        """Entries that the cursor has not seen, merged."""
        run = self._runs[run_id]
        tails = [
            entries[bisect.bisect_right(entries, position, key=lambda entry: entry.position) :]
            for entries, position in zip(run.entries, cursor.positions, strict=True)
        ]
        return list(heapq.merge(*tails, key=_merge_order))

    def phase_at(self, run_id: str, cursor: Cursor) -> RunPhase:
        """The run's phase after the last of its own facts that the cursor has seen."""
        entries = self._runs[run_id].entries[_OWN]
        seen = bisect.bisect_right(entries, cursor.positions[_OWN], key=lambda entry: entry.position)
        return entries[seen - 1].phase if seen else RunPhase.UNSPECIFIED

    def pulse(self, run_id: str) -> asyncio.Event:
        """Set when the run's next commit arrives; take it before reading."""
        return self._runs[run_id].pulse


def _merge_order(entry: Entry) -> tuple[datetime, bool, int, Position]:
    """By time; within one millisecond our own facts last, for they follow from the others'."""
    return (entry.at, entry.topic == _OWN, entry.topic, entry.position)


def _position(text: str) -> Position:
    if not text:
        return _START
    offset, _, index = text.partition(".")
    return int(offset), int(index)
