"""The error tree as ``google.rpc.Status`` and back; nothing else knows status codes."""

from __future__ import annotations

from typing import Any

import grpc
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from trackway_common.errors import (
    CommandRejected,
    CorruptLog,
    Fenced,
    FieldViolation,
    NotFound,
    TrackwayError,
    Unavailable,
)

DOMAIN = "trackway"
DETAILS_KEY = "grpc-status-details-bin"

_ALREADY_EXISTS = "ALREADY_EXISTS"
_PRECONDITION_REASONS = frozenset({"FAILED_PRECONDITION", "RUN_ENDED", "NOT_READY"})


def status_code(error: TrackwayError) -> grpc.StatusCode:
    """Return the gRPC code that stands for an error."""
    match error:
        case NotFound():
            return grpc.StatusCode.NOT_FOUND
        case CommandRejected(reason=reason) if reason == _ALREADY_EXISTS:
            return grpc.StatusCode.ALREADY_EXISTS
        case CommandRejected(reason=reason) if reason in _PRECONDITION_REASONS:
            return grpc.StatusCode.FAILED_PRECONDITION
        case CommandRejected():
            return grpc.StatusCode.INVALID_ARGUMENT
        case Fenced():
            return grpc.StatusCode.ABORTED
        case Unavailable():
            return grpc.StatusCode.UNAVAILABLE
        case CorruptLog():
            return grpc.StatusCode.DATA_LOSS
    return grpc.StatusCode.INTERNAL


def to_status(error: TrackwayError) -> status_pb2.Status:
    """Return the error with its reason (ErrorInfo) and its field violations (BadRequest)."""
    reason = error.reason if isinstance(error, CommandRejected) else type(error).__name__.upper()
    status = status_pb2.Status(code=status_code(error).value[0], message=str(error))
    status.details.append(_packed(error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN)))
    if isinstance(error, CommandRejected) and error.violations:
        bad = error_details_pb2.BadRequest()
        for violation in error.violations:
            bad.field_violations.add(field=violation.field, description=violation.description)
        status.details.append(_packed(bad))
    return status


def as_trackway_error(error: grpc.RpcError) -> TrackwayError:
    """Return what a failed call means, in the terms of the error tree."""
    code, message = error.code(), error.details() or ""
    reason, violations = _details(error)
    match code:
        case grpc.StatusCode.NOT_FOUND:
            return NotFound(message)
        case grpc.StatusCode.INVALID_ARGUMENT | grpc.StatusCode.ALREADY_EXISTS | grpc.StatusCode.FAILED_PRECONDITION:
            return CommandRejected(message, reason=reason or code.name, violations=violations)
        case grpc.StatusCode.ABORTED:
            return Fenced(message)
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.DEADLINE_EXCEEDED | grpc.StatusCode.RESOURCE_EXHAUSTED:
            return Unavailable(message)
        case grpc.StatusCode.DATA_LOSS:
            return CorruptLog(message)
    return TrackwayError(f"{code.name}: {message}")


def _details(error: Any) -> tuple[str, tuple[FieldViolation, ...]]:
    trailing = dict(error.trailing_metadata() or ())
    raw = trailing.get(DETAILS_KEY)
    if not isinstance(raw, bytes):
        return "", ()
    status = status_pb2.Status.FromString(raw)
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in status.details:
        _ = detail.Unpack(info) or detail.Unpack(bad)
    violations = tuple(FieldViolation(field=v.field, description=v.description) for v in bad.field_violations)
    return info.reason, violations


def _packed(message: Any) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed
