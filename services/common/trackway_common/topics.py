"""The log's topics as data: names, partitions, retention."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

RUNS = "trackway.runs.v1"
ATTEMPTS = "trackway.attempts.v1"
CHECKPOINTS = "trackway.checkpoints.v1"
EVALUATIONS = "trackway.evaluations.v1"
COMMANDS = "trackway.commands.v1"
TELEMETRY = "trackway.telemetry.v1"
SIGNALS = "trackway.signals.v1"
DLQ = "trackway.dlq.v1"

FACT_PARTITIONS = 12
"""Fixed at creation, locally too: order and fencing hang on it, and a run's facts are co-partitioned."""
MAX_RECORD_BYTES = 8 << 20
"""What the broker takes; the kernel itself refuses commits above 1 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Settings of one topic."""

    name: str
    partitions: int
    retention: timedelta | None
    """None: for ever."""


TOPICS = (
    Topic(name=RUNS, partitions=FACT_PARTITIONS, retention=None),
    Topic(name=ATTEMPTS, partitions=FACT_PARTITIONS, retention=None),
    Topic(name=CHECKPOINTS, partitions=FACT_PARTITIONS, retention=None),
    Topic(name=EVALUATIONS, partitions=FACT_PARTITIONS, retention=None),
    Topic(name=COMMANDS, partitions=1, retention=timedelta(days=7)),
    Topic(name=TELEMETRY, partitions=FACT_PARTITIONS, retention=timedelta(days=3)),
    Topic(name=SIGNALS, partitions=3, retention=timedelta(days=7)),
    Topic(name=DLQ, partitions=3, retention=timedelta(days=30)),
)
FACT_TOPICS = (RUNS, ATTEMPTS, CHECKPOINTS, EVALUATIONS)

_TOPIC_OF_KIND = {
    "runs": RUNS,
    "datasets": RUNS,
    "packs": RUNS,
    "pools": RUNS,
    "attempts": ATTEMPTS,
    "checkpoints": CHECKPOINTS,
    "evaluations": EVALUATIONS,
}


def topic_of(stream: str) -> str:
    """Return the topic that holds a stream's facts."""
    return _TOPIC_OF_KIND[stream.partition("/")[0]]
