"""One OpenTelemetry span around each served call, from the request to the last message.

Names and attributes are those of OpenTelemetry's semantic conventions for RPC.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from trackway_common.errors import TrackwayError
from trackway_common.rpc_errors import status_code
from trackway_common.telemetry import parent_of, traceparent_of, tracer

_FAULTS = frozenset(
    {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)
"""What is the service's own fault. A passed deadline isn't: callers cut their watches into segments by it."""
_ROUNDING = 0.02
"""Share of a deadline: gRPC rounds it up by 1 % at most when it sends it, so the caller's own passes earlier."""


@contextmanager
def call_span(method: str, context: Any) -> Iterator[None]:
    """Run a call inside a span that continues the caller's trace and records how the call ended.

    Args:
        method: such as ``/trackway_proto.v1.RunService/WatchRun``.
        context: the call's ``grpc.aio.ServicerContext``.
    """
    name = method.removeprefix("/")
    service, _, short = name.partition("/")
    starting = tracer().start_as_current_span(
        name,
        context=parent_of(_traceparent(context)),
        kind=SpanKind.SERVER,
        attributes={"rpc.system": "grpc", "rpc.service": service, "rpc.method": short},
        record_exception=False,  # a refusal is an answer, not a fault
        set_status_on_exception=False,
    )
    given_s = context.time_remaining()
    with starting as current:
        try:
            yield
        except asyncio.CancelledError:
            _record(current, _cut_off(context, given_s))
            raise
        except TrackwayError as error:
            _record(current, status_code(error), str(error))
            raise
        except Exception as error:  # every other failure is a bug of the service: gRPC answers UNKNOWN and logs it
            current.record_exception(error)
            _record(current, grpc.StatusCode.UNKNOWN, str(error))
            raise
        _record(current, grpc.StatusCode.OK)


def _record(current: Span, code: grpc.StatusCode, description: str = "") -> None:
    current.set_attribute("rpc.grpc.status_code", code.value[0])
    if code in _FAULTS:
        current.set_status(Status(StatusCode.ERROR, description))


def _cut_off(context: Any, given_s: float | None) -> grpc.StatusCode:
    """Why a call was cancelled: its deadline passed, or the caller went away or this server stops."""
    passed = given_s is not None and context.time_remaining() <= given_s * _ROUNDING
    return grpc.StatusCode.DEADLINE_EXCEEDED if passed else grpc.StatusCode.CANCELLED


def _traceparent(context: Any) -> str:
    return traceparent_of({key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)})
