"""What each topic's records say, and the rows they make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from trackway_common import topics
from trackway_common.acceptance import Acceptance
from trackway_common.codec import CorruptRecord, decode_commit, decode_request, decode_signal, decode_telemetry
from trackway_common.commit import Term
from trackway_common.event_log import Record
from trackway_common.fact_reader import Judged

from trackway_observer.projection.heads import Before, HeadRow, head_rows
from trackway_observer.projection.ledger import Ledger
from trackway_observer.projection.rows.facts import rows_of
from trackway_observer.projection.rows.messages import dead_letter_row, request_rows, signal_row
from trackway_observer.projection.rows.row import Row
from trackway_observer.projection.rows.telemetry import telemetry_rows

T = TypeVar("T")
MoreRows = Callable[[Judged], Iterable[Row]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """A record that says nothing readable, and why."""

    record: Record
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a range of one partition says, and the rows of it; ``rows`` may be called again and gives the same."""

    rows: Callable[[], Iterator[Row]]
    heads: tuple[HeadRow, ...] = ()
    poison: tuple[Poison, ...] = ()


class Source(Protocol):
    """How one topic is read."""

    topic: str

    async def load(self, ledger: Ledger, positions: Mapping[int, int]) -> None:
        """Take up the state that reading goes on from. Raises Unavailable while ClickHouse is away."""
        ...

    def read(self, records: Sequence[Record]) -> Reading:
        """Read the next range of a partition; each record is read once, in order."""
        ...


class FactSource:
    """A fact topic, through the acceptance rule."""

    def __init__(self, topic: str, more_rows: MoreRows | None = None) -> None:
        self.topic = topic
        self._more_rows = more_rows
        self._acceptance = Acceptance(topic)

    async def load(self, ledger: Ledger, positions: Mapping[int, int]) -> None:
        self._acceptance = await ledger.acceptance(self.topic, positions)

    def read(self, records: Sequence[Record]) -> Reading:
        commits, poison = _decoded(records, lambda record: decode_commit(record.value))
        heads: dict[str, int] = {}
        terms: dict[str, Term] = {}
        judged: list[Judged] = []
        for record, commit in commits:
            scope = self._acceptance.scope_of(record.partition, commit.stream)
            heads.setdefault(commit.stream, self._acceptance.head(commit.stream))
            terms.setdefault(scope, self._acceptance.term(scope))
            verdict = self._acceptance.judge(record.partition, commit)
            judged.append(Judged(record=record, commit=commit, verdict=verdict))
        changed = head_rows(judged, Before(heads=heads, terms=terms), records[-1].offset)
        return Reading(rows=lambda: self._rows(judged), heads=changed, poison=poison)

    def _rows(self, judged: Sequence[Judged]) -> Iterator[Row]:
        for item in judged:
            yield from rows_of(item)
            if self._more_rows is not None and item.accepted:
                yield from self._more_rows(item)


class MessageSource:
    """A topic whose records need no judgement."""

    def __init__(self, topic: str, rows_of_record: Callable[[Record], Iterable[Row]]) -> None:
        self.topic = topic
        self._rows_of_record = rows_of_record

    async def load(self, ledger: Ledger, positions: Mapping[int, int]) -> None:
        return None

    def read(self, records: Sequence[Record]) -> Reading:
        made, poison = _decoded(records, lambda record: list(self._rows_of_record(record)))
        return Reading(rows=lambda: (row for _, rows in made for row in rows), poison=poison)


def sources(samples: MoreRows | None = None) -> tuple[Source, ...]:
    """Every topic's source.

    Args:
        samples: rows beyond the fact itself of what an evaluator says, from its shards.
    """
    return (
        *(FactSource(topic, samples if topic == topics.EVALUATIONS else None) for topic in topics.FACT_TOPICS),
        MessageSource(topics.TELEMETRY, lambda record: telemetry_rows(decode_telemetry(record.value))),
        MessageSource(topics.SIGNALS, lambda record: [signal_row(decode_signal(record.value), record.offset)]),
        MessageSource(topics.COMMANDS, _request_rows),
        MessageSource(topics.DLQ, lambda record: [dead_letter_row(record)]),
    )


def _request_rows(record: Record) -> Iterator[Row]:
    request = decode_request(record.value)
    if request is not None:
        yield from request_rows(request, record.offset)


def _decoded(
    records: Sequence[Record], decode: Callable[[Record], T]
) -> tuple[list[tuple[Record, T]], tuple[Poison, ...]]:
    good: list[tuple[Record, T]] = []
    poison: list[Poison] = []
    for record in records:
        try:
            good.append((record, decode(record)))
        except CorruptRecord as error:
            poison.append(Poison(record=record, why=str(error)))
    return good, tuple(poison)
