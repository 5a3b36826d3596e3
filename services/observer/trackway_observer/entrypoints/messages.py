"""Rows of ``training_attempts`` as messages."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from trackway_common.codec import to_message
from trackway_common.events import CheckpointRef
from trackway_common.history.receipt.outcome_columns import IN_PROGRESS
from trackway_proto.v1 import history_service_pb2, vocabulary_pb2

from trackway_observer.history.json_rows import exact_value
from trackway_observer.history.reader import Record

Slots = Mapping[tuple[str, str], int]
_CHECKPOINT = re.compile(r"s(\d+)-e(\d+)-(.+)")


def attempt_message(record: Record, slots: Slots) -> history_service_pb2.Attempt:
    """One attempt: what most callers want as fields, and the whole receipt.

    Args:
        record: a row of ``training_attempts``.
        slots: of the committed checkpoints, by run and name.
    """
    reason = record["termination_reason"]
    return history_service_pb2.Attempt(
        name=record["name"],
        run_id=record["run_id"],
        attempt=record["attempt"],
        state=record["state"],
        reason=vocabulary_pb2.TerminationReason.Value(
            f"TERMINATION_REASON_{'UNSPECIFIED' if reason == IN_PROGRESS else reason}"
        ),
        domain=vocabulary_pb2.FailureDomain.Value(f"FAILURE_DOMAIN_{record['domain'] or 'UNSPECIFIED'}"),
        cause=record["cause"],
        pool=record["pool"],
        accelerators=record["accelerators"],
        gpu_seconds=record["gpu_seconds"],
        started_at=_timestamp(record["started_at"]),
        ended_at=_timestamp(record["ended_at"]),
        first_step=record["first_step"],
        last_step=record["last_step"],
        resumed_from=_reference(record, "resumed_from", slots),
        last_committed=_reference(record, "last_committed", slots),
        model_family=record["model_family"],
        receipt=struct({name: value for name, value in record.items() if name != "place"}),
    )


def struct(fields: Mapping[str, object]) -> Struct:
    """Fields as JSON holds them: times in ISO 8601, NaN as text, integers beyond 2^53 as text."""
    message = Struct()
    message.update({name: _json_value(value) for name, value in fields.items()})
    return message


def _json_value(value: object) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case float() if not math.isfinite(value):
            return str(value)
        case Decimal():
            return float(value)
        case Mapping():
            return {str(name): _json_value(item) for name, item in value.items()}
        case list() | tuple():
            return [_json_value(item) for item in value]
    return exact_value(value)


def _timestamp(moment: datetime | None) -> Timestamp | None:
    if moment is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp


def _reference(record: Record, column: str, slots: Slots) -> Any:
    """The checkpoint that a column names; None where it names none."""
    name = str(record[column])
    parts = _CHECKPOINT.fullmatch(name)
    if parts is None:
        return None
    run_id = str(record["run_id"])
    ref = CheckpointRef(
        run_id=run_id,
        step=int(parts[1]),
        epoch=int(parts[2]),
        nonce=parts[3],
        manifest_digest=record[f"{column}_digest"],
        slot=slots.get((run_id, name), 0),
    )
    return to_message(ref)
