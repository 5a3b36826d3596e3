"""Each served call is one span of the caller's trace that ends when, and says how, the call ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from trackway_common.errors import NotFound, TrackwayError, Unavailable
from trackway_common.rpc import Servable, serve
from trackway_common.settings import RpcSettings
from trackway_common.telemetry import current_traceparent
from trackway_proto.v1 import run_service_pb2 as pb
from trackway_proto.v1 import run_service_pb2_grpc as stubs

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT_ID = "00f067aa0ba902b7"
CALLER = (("traceparent", f"00-{TRACE_ID}-{PARENT_ID}-01"),)
DEADLINE_S = 10


class Runs(stubs.RunServiceServicer):
    """Streams the trace context that it sees, then does what the test says."""

    def __init__(self, then: Callable[[], object]) -> None:
        self._then = then
        self.closed = asyncio.Event()

    async def WatchRun(self, request: pb.WatchRunRequest, context: object) -> AsyncIterator[pb.WatchRunResponse]:
        try:
            for _ in range(2):
                yield pb.WatchRunResponse(summary=current_traceparent())
            await self._then()
        finally:
            self.closed.set()


class Flood(Runs):
    """Sends more than a caller that doesn't read lets through."""

    async def WatchRun(self, request: pb.WatchRunRequest, context: object) -> AsyncIterator[pb.WatchRunResponse]:
        try:
            while True:
                yield pb.WatchRunResponse(summary="x" * (1 << 20))
        finally:
            self.closed.set()


async def end() -> None:
    pass


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


def refuse(error: Exception) -> Callable[[], object]:
    async def raising() -> None:
        raise error

    return raising


class Spans(SimpleSpanProcessor):
    """Tells when a span has ended; what the server does after the caller's last message can't be awaited otherwise."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        super().__init__(self._exporter)
        self._ended = asyncio.Event()

    def on_end(self, span: ReadableSpan) -> None:
        super().on_end(span)
        self._ended.set()

    async def only(self) -> ReadableSpan:
        async with asyncio.timeout(DEADLINE_S):
            await self._ended.wait()
        (span,) = self._exporter.get_finished_spans()
        return span

    def count(self) -> int:
        return len(self._exporter.get_finished_spans())


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    spans, provider = Spans(), TracerProvider()
    provider.add_span_processor(spans)
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return spans


@asynccontextmanager
async def watching(
    runs: Runs, timeout_s: float | None = None
) -> AsyncIterator[grpc.aio.UnaryStreamCall[pb.WatchRunRequest, pb.WatchRunResponse]]:
    server = await serve(
        RpcSettings(), [Servable(stubs.add_RunServiceServicer_to_server, runs, "trackway_proto.v1.RunService")]
    )
    async with grpc.aio.insecure_channel(server.address) as channel:
        call = stubs.RunServiceStub(channel).WatchRun(pb.WatchRunRequest(), timeout=timeout_s, metadata=CALLER)
        yield call
        call.cancel()
    await server.stop()


async def test_a_stream_is_one_span_of_the_callers_trace(spans: Spans) -> None:
    async with watching(Runs(end)) as call:
        seen = [message.summary async for message in call]
        span = await spans.only()
    assert span.name == "trackway_proto.v1.RunService/WatchRun"
    assert (span.kind, span.status.status_code) == (SpanKind.SERVER, StatusCode.UNSET)
    assert f"{span.context.trace_id:032x}" == TRACE_ID
    assert f"{span.parent.span_id:016x}" == PARENT_ID
    assert seen == [f"00-{TRACE_ID}-{span.context.span_id:016x}-01"] * 2
    assert span.attributes == {
        "rpc.system": "grpc",
        "rpc.service": "trackway_proto.v1.RunService",
        "rpc.method": "WatchRun",
        "rpc.grpc.status_code": 0,
    }


async def test_a_span_is_open_as_long_as_its_stream(spans: Spans) -> None:
    async with watching(Runs(wait_for_ever)) as call:
        await call.read()
        await call.read()
        assert spans.count() == 0


@pytest.mark.parametrize("runs", [Runs(wait_for_ever), Flood(end)], ids=["at rest", "sending"])
async def test_cancelling_ends_the_span_wherever_the_stream_is(spans: Spans, runs: Runs) -> None:
    async with watching(runs) as call:
        await call.read()
        await call.read()
        call.cancel()
        span = await spans.only()
    assert span.attributes["rpc.grpc.status_code"] == grpc.StatusCode.CANCELLED.value[0]
    assert span.status.status_code is StatusCode.UNSET
    assert runs.closed.is_set()


async def test_a_passed_deadline_is_told_apart(spans: Spans) -> None:
    async with watching(Runs(wait_for_ever), timeout_s=3.0) as call:
        with pytest.raises(grpc.aio.AioRpcError):
            _ = [message async for message in call]
        span = await spans.only()
    assert span.attributes["rpc.grpc.status_code"] == grpc.StatusCode.DEADLINE_EXCEEDED.value[0]


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (NotFound("no such run"), grpc.StatusCode.NOT_FOUND, StatusCode.UNSET),
        (Unavailable("later"), grpc.StatusCode.UNAVAILABLE, StatusCode.ERROR),
        (KeyError("a bug"), grpc.StatusCode.UNKNOWN, StatusCode.ERROR),
    ],
)
async def test_a_failure_is_recorded_as_the_caller_sees_it(
    spans: Spans, error: Exception, code: grpc.StatusCode, status: StatusCode
) -> None:
    async with watching(Runs(refuse(error))) as call:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            _ = [message async for message in call]
        span = await spans.only()
    assert raised.value.code() is code
    assert span.attributes["rpc.grpc.status_code"] == code.value[0]
    assert span.status.status_code is status
    assert [event.name for event in span.events] == ([] if isinstance(error, TrackwayError) else ["exception"])
