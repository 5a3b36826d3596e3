"""One gRPC call: its deadline, its trace context, and its failure in the terms of the error tree."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

import grpc
from trackway_common.errors import CommandRejected, TrackwayError, Unavailable
from trackway_common.rpc_errors import as_trackway_error
from trackway_common.telemetry import current_traceparent

Q = TypeVar("Q")
R = TypeVar("R")

QUICK_S = 15.0
"""Deadline of a look-up; it holds the two seconds that a read waits for the projection."""
LONG_S = 60.0
"""Deadline of a submission or a query, and length of one segment of a watch."""
VERIFY_S = 3600.0
"""Deadline of a verification: it reads every byte of a checkpoint."""


class OutOfTime(Unavailable):
    """The deadline passed before the answer was complete."""


class CutOff(Unavailable):
    """The service ended the call without saying why, as one that is stopped or dies does."""


def call(method: grpc.UnaryUnaryMultiCallable[Q, R], request: Q, timeout_s: float = QUICK_S) -> R:
    """Return the answer.

    Raises:
        TrackwayError: what the service said, or Unavailable when it said nothing in time.
    """
    with in_our_terms(timeout_s):
        return method(request, timeout=timeout_s, metadata=metadata())


def stream(method: grpc.UnaryStreamMultiCallable[Q, R], request: Q, timeout_s: float = LONG_S) -> Iterator[R]:
    """Yield the answers; ends the call when the caller stops early.

    Raises:
        OutOfTime: the deadline passed; what came so far is right.
        TrackwayError: as ``call``.
    """
    answers = method(request, timeout=timeout_s, metadata=metadata())
    try:
        with in_our_terms(timeout_s):
            yield from answers
    finally:
        answers.cancel()


@contextmanager
def in_our_terms(timeout_s: float) -> Iterator[None]:
    """Turn a call's failure into what it means."""
    try:
        yield
    except grpc.RpcError as error:
        raise _meaning(error, timeout_s) from error


def metadata() -> tuple[tuple[str, str], ...]:
    """Who calls, and the trace context of the call."""
    fields = (("trackway-actor", _caller()), ("traceparent", current_traceparent()))
    return tuple((key, value) for key, value in fields if value)


@cache
def _caller() -> str:
    """Login name of whoever runs this process; empty where it has none that metadata can carry."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        # A container's process may run under a number that no account has.
        return ""
    return name if name.isascii() and name.isprintable() else ""


def _meaning(error: grpc.RpcError, timeout_s: float) -> TrackwayError:
    code, details = error.code(), error.details() or ""
    match code:
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return OutOfTime(f"no complete answer within {timeout_s:g} s")
        case grpc.StatusCode.CANCELLED | grpc.StatusCode.UNKNOWN:
            return CutOff(f"the service ended the call: {details}")
        case grpc.StatusCode.INTERNAL if "RST_STREAM" in details:
            return CutOff(f"the service ended the call: {details}")
        case grpc.StatusCode.UNIMPLEMENTED:
            return Unavailable(f"nothing at this endpoint answers this call: {details}")
        case grpc.StatusCode.PERMISSION_DENIED | grpc.StatusCode.UNAUTHENTICATED:
            return CommandRejected(details, reason=code.name)
    return as_trackway_error(error)
