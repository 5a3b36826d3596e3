"""Logs of an attempt, read back in order and in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc.aio
import pytest
from trackway_common import topics
from trackway_common.clickhouse import ClickHouse
from trackway_common.codec import encode_measurement
from trackway_common.errors import NotFound
from trackway_common.event_log import InMemoryEventLog
from trackway_common.events import LogLine, TelemetryBatch
from trackway_common.rpc_errors import as_trackway_error
from trackway_common.settings import ClickHouseSettings
from trackway_common.testing.run_facts import RUN_ID, START
from trackway_observer.history.logs import log_lines
from trackway_proto.v1 import history_service_pb2 as pb
from trackway_proto.v1.history_service_pb2_grpc import HistoryServiceStub

from tests.integration.observer.serving import filled_read_model, history, resumed_run
from tests.support.read_model import ReadModelServer

BEGAN_MS = int(START.timestamp() * 1000)
LINES = 7
"""Per rank of attempt 1; two ranks print at the same times."""


def batch(attempt: int, rank: int, lines: int) -> TelemetryBatch:
    printed = tuple(
        LogLine(
            # Three lines share each millisecond, so that order must come from the record number.
            record=number + 1,
            at_ms=BEGAN_MS + number // 3,
            stream="stderr" if number % 2 else "stdout",
            step=number,
            text=f"rank {rank} line {number}\t„ü\u0000\\",
        )
        for number in range(lines)
    )
    return TelemetryBatch(run_id=RUN_ID, attempt=attempt, rank=rank, epoch=attempt, logs=printed)


async def told() -> InMemoryEventLog:
    log = await resumed_run()
    for sent in (batch(1, 1, LINES), batch(1, 0, LINES), batch(2, 0, 2), batch(1, 0, LINES)):
        await log.append(topics.TELEMETRY, 0, RUN_ID.encode(), encode_measurement(sent), ())
    return log


@pytest.fixture(scope="module")
def settings(server: ReadModelServer) -> ClickHouseSettings:
    return filled_read_model(server.settings("history_logs"), told())


@pytest.fixture
async def filled(settings: ClickHouseSettings) -> AsyncIterator[ClickHouse]:
    database = ClickHouse(settings)
    yield database
    await database.close()


@pytest.fixture
async def served(filled: ClickHouse) -> AsyncIterator[HistoryServiceStub]:
    async with history(filled) as stub:
        yield stub


async def printed(served: HistoryServiceStub, request: pb.ListLogsRequest) -> list[pb.HistoryLogLine]:
    return [line async for line in served.ListLogs(request)]


async def test_all_ranks_by_time_each_in_its_own_order(served: HistoryServiceStub) -> None:
    lines = await printed(served, pb.ListLogsRequest(run_id=RUN_ID, attempt=1))
    assert len(lines) == 2 * LINES, "a batch that was sent twice counts once"
    assert [line.at_ms for line in lines] == sorted(line.at_ms for line in lines)
    for rank in (0, 1):
        assert [line.step for line in lines if line.rank == rank] == list(range(LINES))
    assert lines[0].text == "rank 0 line 0\t„ü\u0000\\"
    assert {line.stream for line in lines} == {"stdout", "stderr"}


async def test_one_rank(served: HistoryServiceStub) -> None:
    lines = await printed(served, pb.ListLogsRequest(run_id=RUN_ID, attempt=1, rank=0))
    assert [(line.rank, line.step) for line in lines] == [(0, step) for step in range(LINES)]
    assert await printed(served, pb.ListLogsRequest(run_id=RUN_ID, attempt=1, rank=5)) == []


async def test_no_attempt_named_means_the_newest(served: HistoryServiceStub) -> None:
    lines = await printed(served, pb.ListLogsRequest(run_id=RUN_ID[:20]))
    assert [(line.attempt, line.step) for line in lines] == [(2, 0), (2, 1)]


@pytest.mark.parametrize("request_", [pb.ListLogsRequest(run_id=RUN_ID, attempt=3), pb.ListLogsRequest(run_id="ffff")])
async def test_logs_of_what_is_not_there(served: HistoryServiceStub, request_: pb.ListLogsRequest) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await printed(served, request_)
    assert isinstance(as_trackway_error(failed.value), NotFound)


@pytest.mark.parametrize("page", [1, 2, 3, 5, 14, 100])
async def test_pages_leave_nothing_out_and_repeat_nothing(filled: ClickHouse, page: int) -> None:
    lines = [(line.rank, line.step) async for line in log_lines(filled, RUN_ID, 1, None, page=page)]
    assert sorted(lines) == [(rank, step) for rank in (0, 1) for step in range(LINES)]
