"""Identifiers, and the names of streams built from them."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from typing import NewType, Protocol

RunId = NewType("RunId", str)
"""UUIDv7 in its 36-character form; minted by the submitter as the request id."""
EvaluationId = NewType("EvaluationId", str)
AgentId = NewType("AgentId", str)
Digest = NewType("Digest", str)
"""``sha256:`` and 64 hex digits."""
Stream = NewType("Stream", str)
"""``{kind}/{id}``."""


class IdSource(Protocol):
    """Where new ids come from; injected so that deciders and tests stay deterministic."""

    def __call__(self) -> str:
        """Return a UUIDv7 that was never returned before."""
        ...


def uuid7(now_ns: Callable[[], int] = time.time_ns) -> str:
    """Return a time-ordered UUID (RFC 9562, version 7, millisecond precision)."""
    millis = now_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (
        (millis & (1 << 48) - 1) << 80 | 0x7 << 76 | (random >> 68 & 0xFFF) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    )
    return str(uuid.UUID(int=value))


def is_uuid7(text: str) -> bool:
    """Tell whether the text is a UUID of version 7 in its canonical lower-case form."""
    try:
        parsed = uuid.UUID(text)
    except ValueError:
        return False
    return parsed.version == 7 and str(parsed) == text


def run_stream(run_id: str) -> Stream:
    """Stream of a run's own facts."""
    return Stream(f"runs/{run_id}")


def attempt_stream(run_id: str, attempt: int) -> Stream:
    """Stream of one attempt's facts; also its ownership scope."""
    return Stream(f"attempts/{run_id}/{attempt}")


def checkpoint_stream(run_id: str) -> Stream:
    """Stream that mirrors the run's commit log."""
    return Stream(f"checkpoints/{run_id}")


def evaluation_stream(run_id: str) -> Stream:
    """Stream of all evaluations of one run; also its ownership scope."""
    return Stream(f"evaluations/{run_id}")


def dataset_stream(project: str, name: str) -> Stream:
    """Stream of the snapshots registered under one name in one project."""
    return Stream(f"datasets/{project}/{name}")


def pool_stream(name: str) -> Stream:
    """Stream of one pool's offers."""
    return Stream(f"pools/{name}")


def root_key(stream: str) -> bytes:
    """Record key of a stream: the run's UUID for everything of a run, else ``{kind}/{id}``.

    All facts of a run share it, so they are co-partitioned across topics.
    """
    kind, _, rest = stream.partition("/")
    if kind in {"runs", "attempts", "checkpoints", "evaluations"}:
        return rest.partition("/")[0].encode()
    return stream.encode()
