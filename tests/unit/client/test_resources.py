"""The client's dataclasses have the fields of the messages that they stand for."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from trackway.client import resources
from trackway.client.paging import read
from trackway_common.events import RunPhase, TerminationReason
from trackway_proto.v1 import (
    agent_service_pb2,
    checkpoint_service_pb2,
    dataset_service_pb2,
    evaluation_service_pb2,
    history_service_pb2,
    pool_service_pb2,
    run_service_pb2,
    vocabulary_pb2,
)

PAIRS = [
    (resources.Run, run_service_pb2.Run),
    (resources.Attempt, history_service_pb2.Attempt),
    (resources.Explanation, history_service_pb2.Explanation),
    (resources.Dataset, dataset_service_pb2.Dataset),
    (resources.Checkpoint, checkpoint_service_pb2.Checkpoint),
    (resources.CheckpointCheck, checkpoint_service_pb2.VerifyCheckpointResponse),
    (resources.Evaluation, evaluation_service_pb2.Evaluation),
    (resources.Pool, pool_service_pb2.Pool),
    (resources.LogLine, history_service_pb2.HistoryLogLine),
]


@pytest.mark.parametrize(("kind", "message"), PAIRS)
def test_fields_are_those_of_the_message(kind: Any, message: Any) -> None:
    assert {field.name for field in dataclasses.fields(kind)} == {field.name for field in message.DESCRIPTOR.fields}


@pytest.mark.parametrize(("kind", "message"), PAIRS)
def test_an_empty_message_can_be_read(kind: Any, message: Any) -> None:
    assert isinstance(read(message(), kind), kind)


def test_a_line_of_an_agent_is_a_line_of_the_history() -> None:
    line = agent_service_pb2.TailLogsResponse(attempt=2, rank=1, at_ms=5, stream="stderr", text="oops", step=9)
    expected = resources.LogLine(attempt=2, rank=1, at_ms=5, stream="stderr", text="oops", step=9)
    assert read(line, resources.LogLine) == expected


def test_what_is_absent_is_none_and_what_is_there_is_read() -> None:
    run = read(run_service_pb2.Run(run_id="r", phase=vocabulary_pb2.RUN_PHASE_FAILED), resources.Run)
    assert (run.spec, run.submitted_at, run.ended_at, run.last_committed) == (None, None, None, None)
    assert run.phase is RunPhase.FAILED
    assert run.ended


def test_a_receipt_is_a_plain_mapping() -> None:
    receipt = Struct()
    receipt.update({"pool": "local", "ranks": [0, 1]})
    message = history_service_pb2.Attempt(reason=vocabulary_pb2.TERMINATION_REASON_PROCESS_CRASH, receipt=receipt)
    attempt = read(message, resources.Attempt)
    assert attempt.receipt == {"pool": "local", "ranks": [0, 1]}
    assert attempt.reason is TerminationReason.PROCESS_CRASH
