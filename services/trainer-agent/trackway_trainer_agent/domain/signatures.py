"""Exceptions and printed lines that say more than they seem to. Data; the first that matches counts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from trackway_common.events import TerminationReason as Reason


class Part(StrEnum):
    """What part an error of this kind plays."""

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    """Somebody else failed first; the reason counts only when nobody else did."""


@dataclass(frozen=True, slots=True)
class Signature:
    """A pattern over ``type: message`` of an exception, or over a printed line."""

    pattern: re.Pattern[str]
    part: Part
    reason: Reason


def of_error(text: str) -> Signature | None:
    """The signature of an exception's ``type: message``."""
    return _first(_ERRORS, text)


def of_line(line: str) -> Signature | None:
    """The signature of a printed line."""
    return _first(_LINES, line)


def _first(table: tuple[Signature, ...], text: str) -> Signature | None:
    return next((signature for signature in table if signature.pattern.search(text)), None)


def _cause(pattern: str, reason: Reason) -> Signature:
    return Signature(re.compile(pattern, re.IGNORECASE), Part.CAUSE, reason)


def _consequence(pattern: str, reason: Reason) -> Signature:
    return Signature(re.compile(pattern, re.IGNORECASE), Part.CONSEQUENCE, reason)


_TRANSPORT = r"(gloo|nccl|\bucc\b|tcp/pair|ProcessGroup|TCPStore|c10d|\bpeer\b)"
_PEER_GONE = (
    r"(connection (was )?(reset|closed|refused|aborted)|connect refused|socket closed|broken pipe"
    r"|remote process exited|unhandled system error)"
)
_COLLECTIVE_TIMEOUT = (
    r"watchdog caught collective operation timeout|watchdog got stuck|collective operation timed? ?out"
    r"|(recv|send|wait|connect) operation .*timed out|timed out waiting \d+ ?ms for (recv|send)|monitoredBarrier"
)
_DEVICE_OOM = r"OutOfMemoryError\b.*\b(CUDA|HIP|XPU|MPS)|(CUDA|HIP) out of memory|CUBLAS_STATUS_ALLOC_FAILED"

_SHARED = (
    _cause(_DEVICE_OOM, Reason.DEVICE_OOM),
    _cause(r"CUDA error: out of memory", Reason.DEVICE_OOM),
    _cause(r"no space left on device|disk quota exceeded", Reason.STORAGE_FULL),
    # Xid numbers that NVIDIA's catalogue calls hardware faults.
    _cause(r"uncorrectable (NVLink|ECC)|\bXid\b.*\b(48|63|64|74|79|94|95|119)\b", Reason.DEVICE_HARDWARE),
    _consequence(_COLLECTIVE_TIMEOUT, Reason.COLLECTIVE_TIMEOUT),
)
_ERRORS = (
    *_SHARED,
    _cause(r"^Unavailable: ", Reason.STORAGE_TRANSIENT),
    _cause(r"^torch(\.cuda)?\.OutOfMemoryError\b", Reason.DEVICE_OOM),
    _cause(r"^(builtins\.)?MemoryError\b", Reason.HOST_OOM),
    _cause(r"\bRendezvous(Timeout|Connection|Closed|State)Error\b", Reason.RENDEZVOUS_FAILED),
    # The loader's worker died first; the host's side of the evidence may say of what.
    _consequence(r"DataLoader worker .*(killed by signal|exited unexpectedly)", Reason.UNKNOWN_KILL),
    _consequence(r"\bDist(Backend|Network|Store)?Error\b", Reason.NETWORK_FABRIC),
    _consequence(r"^(ConnectionResetError|ConnectionAbortedError|BrokenPipeError)\b", Reason.NETWORK_FABRIC),
    _consequence(_TRANSPORT + ".*" + _PEER_GONE, Reason.NETWORK_FABRIC),
    _consequence(_PEER_GONE + ".*" + _TRANSPORT, Reason.NETWORK_FABRIC),
)
_LINES = (
    *_SHARED,
    _cause(r"can't open file '.*': \[Errno 2\]", Reason.CONFIG_INVALID),
    _cause(
        r"error: (unrecognized arguments|the following arguments are required|argument \S+: )", Reason.CONFIG_INVALID
    ),
    _consequence(_TRANSPORT + ".*" + _PEER_GONE, Reason.NETWORK_FABRIC),
    _consequence(_PEER_GONE + ".*" + _TRANSPORT, Reason.NETWORK_FABRIC),
)
