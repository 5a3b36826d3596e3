"""Rows of signals, agents' heartbeats and dead letters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from trackway_common import events as e
from trackway_common.commit import Request
from trackway_common.event_log import Record
from trackway_common.history.wording import time_of_ms

from trackway_observer.projection.rows.row import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalRow:
    TABLE: ClassVar[str] = "signals_state"
    signal_id: str
    version: int
    kind: str
    run_id: str
    attempt: int
    rank: int | None
    quiet_seconds: float
    threshold_seconds: float
    message: str
    observed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """An agent's newest heartbeat; ``version`` is its place in the log."""

    TABLE: ClassVar[str] = "agents_state"
    agent_id: str
    version: int
    endpoint: str
    pool: str
    cluster_id: str
    cpus: float
    accelerators: int
    memory_bytes: int
    environment_digest: str
    python_version: str
    attempts: tuple[str, ...]
    last_seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterRow:
    """A record that nobody could read, by where it stood."""

    TABLE: ClassVar[str] = "dead_letters_state"
    original_topic: str
    original_partition: int
    original_offset: int
    version: int
    reader: str
    why: str
    key: bytes
    payload: bytes
    buried_at: datetime


def signal_row(signal: e.Signal, offset: int) -> SignalRow:
    """The row of a signal; the same signal again replaces it."""
    return SignalRow(
        signal_id=signal.signal_id,
        version=offset,
        kind=signal.kind,
        run_id=signal.run_id,
        attempt=signal.attempt,
        rank=signal.rank,
        quiet_seconds=signal.quiet_seconds,
        threshold_seconds=signal.threshold_seconds,
        message=signal.message,
        observed_at=time_of_ms(signal.observed_at_ms),
    )


def request_rows(request: Request, offset: int) -> Iterator[Row]:
    """Rows of a request: only an agent's heartbeat leaves one."""
    beat = request.body
    if isinstance(beat, e.AgentHeartbeat):
        yield AgentRow(
            agent_id=beat.agent_id,
            version=offset,
            endpoint=beat.endpoint,
            pool=beat.pool,
            cluster_id=beat.cluster_id,
            cpus=beat.cpus,
            accelerators=beat.accelerators,
            memory_bytes=beat.memory_bytes,
            environment_digest=beat.environment_digest,
            python_version=beat.python_version,
            attempts=beat.attempts,
            last_seen_at=request.sent_at,
        )


def dead_letter_row(record: Record) -> DeadLetterRow:
    """The row of a dead letter; of several copies of one record the first counts."""
    origin = {name: value.decode(errors="replace") for name, value in record.headers}
    return DeadLetterRow(
        original_topic=origin.get("original_topic", ""),
        original_partition=_number(origin.get("original_partition", "")),
        original_offset=_number(origin.get("original_offset", "")),
        version=_FIRST_COPY - record.offset,
        reader=origin.get("reader", ""),
        why=origin.get("why", ""),
        key=record.key,
        payload=record.value,
        buried_at=record.appended_at,
    )


def _number(text: str) -> int:
    """Headers are anybody's words: what is no plain number counts as 0."""
    return int(text) if _NUMBER.fullmatch(text) else 0


_FIRST_COPY = 1 << 62
"""Versions count down from here, so that the oldest copy has the greatest."""
_NUMBER = re.compile(r"[0-9]{1,18}")
