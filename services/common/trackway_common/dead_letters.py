"""Where poison records go, with their origin."""

from __future__ import annotations

import logging

from trackway_common.clock import Clock, SystemClock
from trackway_common.errors import Unavailable
from trackway_common.event_log import EventLog, Record
from trackway_common.partitioner import partition_of
from trackway_common.topics import DLQ

log = logging.getLogger(__name__)

RETRY_S = 1.0
"""A reader that can't bury poison waits rather than drops it."""


class DeadLetters:
    """Copies poison records to the dead-letter topic."""

    def __init__(self, event_log: EventLog, reader: str, clock: Clock | None = None) -> None:
        self._log = event_log
        self._reader = reader
        self._clock = clock or SystemClock()

    async def bury(self, record: Record, why: str) -> None:
        """Copy a record with its origin; returns once the copy is acknowledged, however long that takes.

        Copies may repeat after a crash; the origin headers identify them.
        """
        origin = {
            "original_topic": record.topic,
            "original_partition": str(record.partition),
            "original_offset": str(record.offset),
            "reader": self._reader,
            "why": why[:500],
        }
        headers = tuple((name, value.encode()) for name, value in origin.items())
        log.warning("record buried", extra=origin)
        while True:
            try:
                partition = partition_of(record.key or b"", await self._log.partition_count(DLQ))
                await self._log.append(DLQ, partition, record.key or b"", record.value or b"", headers)
            except Unavailable as error:
                log.info("burial waits", extra={"topic": DLQ, "error": str(error)})
                await self._clock.sleep(RETRY_S)
            else:
                return
