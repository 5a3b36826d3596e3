"""How far the projection is, kept beside its rows: ranges PENDING and DONE, and the acceptance state.

Rows of a range carry tokens made of its offsets, so a range that was interrupted is read again from the log and
inserted again under the same tokens: what was there already has no effect, what was missing gets in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from trackway_common.acceptance import Acceptance
from trackway_common.clickhouse import ClickHouse
from trackway_common.commit import Term

from trackway_observer.projection.columns import TableColumns
from trackway_observer.projection.heads import HeadRow, acceptance_from

PENDING, DONE = 1, 2
LEDGER_COLUMNS = (
    "projector",
    "generation",
    "topic",
    "kafka_partition",
    "first_offset",
    "last_offset",
    "state",
    "appended_at",
    "version",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Consecutive records of one partition that are inserted together."""

    topic: str
    partition: int
    first: int
    last: int
    appended_at: datetime
    """Of its last record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicProgress:
    """How far a topic was projected."""

    positions: Mapping[int, int]
    """Per partition the first offset that is not DONE; absent where nothing was projected yet."""
    pending: Mapping[int, OffsetRange]
    """Ranges that were begun: they are replayed exactly as they were cut."""


class Ledger:
    """The ledger of one projector and generation. Every method raises Unavailable while ClickHouse is away."""

    def __init__(self, database: ClickHouse, projector: str, generation: int) -> None:
        self._database = database
        self.projector = projector
        self.generation = generation

    async def progress(self, topic: str) -> TopicProgress:
        """Where the topic's projection stands."""
        rows = await self._database.rows(
            "select kafka_partition, first_offset, last_offset, state, appended_at from projector_ledger final"
            " where projector = {p:String} and generation = {g:UInt32} and topic = {t:String}",
            {"p": self.projector, "g": self.generation, "t": topic},
        )
        ranges = {
            row[0]: (row[3], OffsetRange(topic=topic, partition=row[0], first=row[1], last=row[2], appended_at=row[4]))
            for row in rows
        }
        return TopicProgress(
            positions={p: r.last + 1 if state == DONE else r.first for p, (state, r) in ranges.items()},
            pending={p: r for p, (state, r) in ranges.items() if state == PENDING},
        )

    async def acceptance(self, topic: str, positions: Mapping[int, int]) -> Acceptance:
        """Acceptance state as it was before the given positions."""
        rows = await self._database.rows(
            "select kafka_partition, kind, name, head, head_before, epoch, epoch_before, claim, claim_before,"
            " range_last from stream_heads final"
            " where projector = {p:String} and generation = {g:UInt32} and topic = {t:String}",
            {"p": self.projector, "g": self.generation, "t": topic},
        )
        return acceptance_from(topic, [_head(row) for row in rows], positions)

    async def begin(self, range_: OffsetRange) -> None:
        """Say that the range's rows are about to be inserted."""
        await self._write(range_, PENDING)

    async def insert(self, range_: OffsetRange, columns: TableColumns) -> None:
        """Insert a table's rows of a range; again has no effect."""
        token = (
            f"{self.projector}:{self.generation}:{columns.table}:"
            f"{range_.topic}:{range_.partition}:{range_.first}-{range_.last}"
        )
        await self._database.insert(columns.table, columns.names, columns.data, token=token)

    async def finish(self, range_: OffsetRange) -> None:
        """Say that all rows of the range are there."""
        await self._write(range_, DONE)

    async def _write(self, range_: OffsetRange, state: int) -> None:
        values: Sequence[object] = (
            self.projector,
            self.generation,
            range_.topic,
            range_.partition,
            range_.first,
            range_.last,
            state,
            range_.appended_at,
            2 * range_.last + state,
        )
        await self._database.insert("projector_ledger", LEDGER_COLUMNS, [[value] for value in values])


def _head(row: Sequence[int | str]) -> HeadRow:
    partition, kind, name, head, head_before, epoch, epoch_before, claim, claim_before, range_last = row
    return HeadRow(
        kafka_partition=int(partition),
        kind=str(kind),
        name=str(name),
        head=int(head),
        head_before=int(head_before),
        term=Term(int(epoch), int(claim)),
        term_before=Term(int(epoch_before), int(claim_before)),
        range_last=int(range_last),
    )
