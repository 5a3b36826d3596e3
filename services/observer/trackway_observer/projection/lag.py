"""How far behind the log the projection is, for people and dashboards."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from trackway_common.clickhouse import ClickHouse, StatementRefused
from trackway_common.clock import Clock
from trackway_common.errors import Unavailable
from trackway_common.event_log import EventLog

from trackway_observer.projection.progress import Place, Progress

log = logging.getLogger(__name__)

REPORT_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LagRow:
    """One partition's distance from its end."""

    topic: str
    kafka_partition: int
    position: int
    end_offset: int
    records_behind: int
    seconds_behind: float
    observed_at: datetime


async def ends_of(event_log: EventLog, topics: Sequence[str]) -> dict[Place, int]:
    """Where the partitions end now. Raises Unavailable while the log is away."""
    ends: dict[Place, int] = {}
    for topic in topics:
        for partition, end in (await event_log.end_offsets(topic)).items():
            ends[Place(topic, partition)] = end
    return ends


def lag_rows(progress: Progress, ends: Mapping[Place, int], now: datetime) -> tuple[LagRow, ...]:
    """One row per partition; seconds count from the newest record that was projected, 0 at the end."""
    rows = []
    for place, end in ends.items():
        behind = max(0, end - progress.position(place))
        newest = progress.appended_at(place)
        late_s = max(0.0, (now - newest).total_seconds()) if behind and newest else 0.0
        rows.append(
            LagRow(
                topic=place.topic,
                kafka_partition=place.partition,
                position=progress.position(place),
                end_offset=end,
                records_behind=behind,
                seconds_behind=late_s,
                observed_at=now,
            )
        )
    return tuple(rows)


class LagReporter:
    """Writes ``projector_lag`` every two seconds."""

    def __init__(self, event_log: EventLog, database: ClickHouse, progress: Progress, projector: str) -> None:
        self._log = event_log
        self._database = database
        self._progress = progress
        self._projector = projector

    async def run(self, topics: Sequence[str], clock: Clock) -> None:
        """Report for ever; while a part is away, in the service's own log."""
        while True:
            try:
                await self._report(await ends_of(self._log, topics), clock.now())
            except (Unavailable, StatementRefused) as error:
                log.warning("lag not reported", extra={"error": str(error)})
            await clock.sleep(REPORT_S)

    async def _report(self, ends: Mapping[Place, int], now: datetime) -> None:
        rows = lag_rows(self._progress, ends, now)
        if behind := sum(row.records_behind for row in rows):
            log.info("projection behind", extra={"records": behind})
        names = tuple(LagRow.__dataclass_fields__)
        data = [[self._projector] * len(rows), *([getattr(row, name) for row in rows] for name in names)]
        await self._database.insert("projector_lag_state", ("projector", *names), data)
