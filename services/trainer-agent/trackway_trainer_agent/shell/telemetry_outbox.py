"""What an attempt's ranks measured, batched on its way to the telemetry topic."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from trackway_common.clock import Clock
from trackway_common.codec import encode_measurement
from trackway_common.errors import Unavailable
from trackway_common.event_log import EventLog
from trackway_common.events import LogLine, RankHeartbeat, ResourceSample, StepMetrics, TelemetryBatch
from trackway_common.partitioner import partition_of
from trackway_common.topics import TELEMETRY

log = logging.getLogger(__name__)

BATCH_BYTES = 512 << 10
"""Far below what a broker takes, so that one chatty rank delays nobody."""
MAX_WAITING_BYTES = 8 << 20
"""Beyond it the ranks keep their records themselves, on disk, until the topic is back."""
_ITEM_BYTES = 64

Measurement = StepMetrics | LogLine | ResourceSample


@dataclass(slots=True)
class _Rank:
    items: list[Measurement] = field(default_factory=list)
    heartbeat: RankHeartbeat | None = None
    dropped_metrics: int = 0
    dropped_logs: int = 0


class TelemetryOutbox:
    """Of one attempt. A batch may be sent twice; its items carry their record numbers."""

    def __init__(self, event_log: EventLog, *, run_id: str, attempt: int, epoch: int, clock: Clock) -> None:
        self._log = event_log
        self._run_id = run_id
        self._attempt = attempt
        self._epoch = epoch
        self._clock = clock
        self._ranks: dict[int, _Rank] = {}
        self._waiting_bytes = 0
        self._sending = asyncio.Lock()
        self._room = asyncio.Event()
        self._room.set()

    def add(self, rank: int, item: Measurement) -> None:
        """Queue a measurement."""
        self._rank(rank).items.append(item)
        self._waiting_bytes += _size(item)
        if self._waiting_bytes > MAX_WAITING_BYTES:
            self._room.clear()

    def beat(self, rank: int, heartbeat: RankHeartbeat, *, dropped_metrics: int, dropped_logs: int) -> None:
        """Say that a rank lives; only the last one before a flush is sent."""
        told = self._rank(rank)
        told.heartbeat, told.dropped_metrics, told.dropped_logs = heartbeat, dropped_metrics, dropped_logs

    async def room(self) -> None:
        """Wait until more may be added."""
        await self._room.wait()

    async def run(self, every_s: float) -> None:
        """Send what is there, for ever; a topic that is away is waited out."""
        while True:
            try:
                await self.flush()
            except Unavailable as error:
                log.info("telemetry waits", extra={"run_id": self._run_id, "error": str(error)})
            await self._clock.sleep(every_s)

    async def flush(self) -> None:
        """Send everything that is there.

        Raises:
            Unavailable: the topic is away; what was not acknowledged stays queued.
        """
        async with self._sending:
            for rank, told in list(self._ranks.items()):
                while told.items or told.heartbeat is not None:
                    await self._send(rank, told)

    async def _send(self, rank: int, told: _Rank) -> None:
        items, heartbeat = _first_batch(told.items), told.heartbeat
        batch = TelemetryBatch(
            run_id=self._run_id,
            attempt=self._attempt,
            epoch=self._epoch,
            rank=rank,
            steps=tuple(item for item in items if isinstance(item, StepMetrics)),
            logs=tuple(item for item in items if isinstance(item, LogLine)),
            samples=tuple(item for item in items if isinstance(item, ResourceSample)),
            heartbeat=heartbeat,
            dropped_metrics=told.dropped_metrics,
            dropped_logs=told.dropped_logs,
        )
        key = self._run_id.encode()
        partition = partition_of(key, await self._log.partition_count(TELEMETRY))
        await self._log.append(TELEMETRY, partition, key, encode_measurement(batch), _HEADERS)
        del told.items[: len(items)]
        if told.heartbeat is heartbeat:
            told.heartbeat = None
        self._waiting_bytes -= sum(map(_size, items))
        if self._waiting_bytes <= MAX_WAITING_BYTES:
            self._room.set()

    def _rank(self, rank: int) -> _Rank:
        return self._ranks.setdefault(rank, _Rank())


_HEADERS = (("ce_type", b"trackway.telemetry.v1"),)


def _first_batch(items: list[Measurement]) -> list[Measurement]:
    size, count = 0, 0
    for item in items:
        size += _size(item)
        if count and size > BATCH_BYTES:
            break
        count += 1
    return items[:count]


def _size(item: Measurement) -> int:
    match item:
        case LogLine():
            return _ITEM_BYTES + len(item.text)
        case StepMetrics():
            return _ITEM_BYTES * (1 + len(item.values))
        case ResourceSample():
            return _ITEM_BYTES
