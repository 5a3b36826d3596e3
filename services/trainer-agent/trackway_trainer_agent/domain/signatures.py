"""Exceptions and printed lines that say more than they seem to: one table, versioned with the classifier.

The first row that matches counts. A row is here because a library, a driver or a kernel words its failures so; where
the words come from stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trackway_common.events import TerminationReason as Reason
from trackway_common.patterns import Pattern


class Part(StrEnum):
    """What part an error of this kind plays."""

    CAUSE = "cause"
    CONSEQUENCE = "consequence"
    """Somebody else failed first; the reason counts only when nobody else did."""


class Where(StrEnum):
    """What a row is searched in."""

    ERROR = "error"
    """``type: message`` of an exception."""
    LINE = "line"
    """A printed line."""
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Signature:
    """One row."""

    name: str
    pattern: Pattern
    part: Part
    reason: Reason
    where: Where


def of_error(text: str) -> Signature | None:
    """The signature of an exception's ``type: message``."""
    return _first(Where.ERROR, text[:SEARCHED_CHARACTERS])


def of_line(line: str) -> Signature | None:
    """The signature of a printed line."""
    return _first(Where.LINE, line[:SEARCHED_CHARACTERS])


SEARCHED_CHARACTERS = 8192
"""Whoever says more, said what it is at the beginning."""


def _first(where: Where, text: str) -> Signature | None:
    return next((row for row in TABLE if row.where in {where, Where.BOTH} and row.pattern.found_in(text)), None)


def _row(
    name: str, reason: Reason, *alternatives: str, part: Part = Part.CAUSE, where: Where = Where.BOTH
) -> Signature:
    return Signature(name, Pattern("(?i)" + "|".join(alternatives)), part, reason, where)


def _error(name: str, reason: Reason, *alternatives: str, part: Part = Part.CAUSE) -> Signature:
    return _row(name, reason, *alternatives, part=part, where=Where.ERROR)


def _line(name: str, reason: Reason, *alternatives: str, part: Part = Part.CAUSE) -> Signature:
    return _row(name, reason, *alternatives, part=part, where=Where.LINE)


_CONSEQUENCE = Part.CONSEQUENCE
_TRANSPORT = r"(gloo|nccl|\bucc\b|tcp/pair|ProcessGroup|TCPStore|c10d|\bpeer\b)"
_PEER_GONE = (
    r"(connection (was )?(reset|closed|refused|aborted)|connect refused|socket closed|broken pipe"
    r"|remote process exited|unhandled system error)"
)

TABLE: tuple[Signature, ...] = (
    # Device memory: torch's caching allocator, cuBLAS, the CUDA and HIP runtimes.
    _row(
        "torch device memory",
        Reason.DEVICE_OOM,
        r"OutOfMemoryError\b.*\b(CUDA|HIP|XPU|MPS)",
        r"(CUDA|HIP) out of memory",
    ),
    _row("cublas allocation", Reason.DEVICE_OOM, r"CUBLAS_STATUS_ALLOC_FAILED", r"CUDNN_STATUS_ALLOC_FAILED"),
    _row("runtime device memory", Reason.DEVICE_OOM, r"CUDA error: out of memory", r"hipErrorOutOfMemory"),
    _error("torch out of memory", Reason.DEVICE_OOM, r"^torch(\.cuda)?\.OutOfMemoryError\b"),
    # Host memory: what an allocator says when the kernel or RLIMIT_AS refuses.
    _error("python memory", Reason.HOST_OOM, r"^(builtins\.)?MemoryError\b", r"_ArrayMemoryError\b"),
    _error("refused allocation", Reason.HOST_OOM, r"DefaultCPUAllocator: (not enough|can't allocate) memory"),
    _error("cannot allocate", Reason.HOST_OOM, r"\[Errno 12\]", r"Cannot allocate memory"),
    _line("bad_alloc", Reason.HOST_OOM, r"^terminate called .*std::bad_alloc", r"^  what\(\):  std::bad_alloc"),
    # Room: ENOSPC, EDQUOT. A loader that finds no shared memory is told a bus error.
    _row("no room", Reason.STORAGE_FULL, r"no space left on device", r"disk quota exceeded", r"\[Errno (28|122)\]"),
    _row(
        "no shared memory",
        Reason.STORAGE_FULL,
        r"insufficient shared memory \(shm\)",
        r"unable to (write|allocate) to? ?.*shm",
    ),
    # Storage that may be back in a moment: EIO, ESTALE, EREMOTEIO, and what object stores answer under load.
    _error("store away", Reason.STORAGE_TRANSIENT, r"^Unavailable: "),
    _error(
        "device i/o",
        Reason.STORAGE_TRANSIENT,
        r"\[Errno (5|116|121)\]",
        r"Input/output error",
        r"Stale file handle",
        r"os error 5\b",
    ),
    _error(
        "object store",
        Reason.STORAGE_TRANSIENT,
        r"\bSlowDown\b",
        r"\b(429|500|502|503|504)\b.{0,40}(Slow ?Down|Service Unavailable|Server Error)",
        r"\b(429|502|504)\b.{0,40}(Too Many Requests|Bad Gateway|Gateway Time-?out)",
        r"ServiceUnavailable",
        r"reduce your request rate",
    ),
    # NVIDIA's catalogue of Xids calls these hardware faults.
    _row(
        "device hardware",
        Reason.DEVICE_HARDWARE,
        r"uncorrectable (NVLink|ECC)",
        # The number behind the device: its address and a process id may hold the same digits.
        r"Xid \(PCI:[^)]*\): (48|63|64|74|79|94|95|119)\b",
    ),
    _row(
        "device gone",
        Reason.DEVICE_HARDWARE,
        r"GPU has fallen off the bus",
        r"CUDA error: device unavailable",
        # A device that nobody else may use now: the next attempt goes to another node.
        r"CUDA-capable device\(s\) is/are busy or unavailable",
    ),
    # A kernel read or wrote where nothing is: CUDA's segmentation fault.
    _row("kernel crash", Reason.PROCESS_CRASH, r"CUDA error: unspecified launch failure"),
    # Numbers: torch's anomaly mode, Python's and numpy's own, and what people write in their guards.
    _error("anomaly mode", Reason.NUMERIC_DIVERGENCE, r"returned nan values in its \d+th output"),
    _error("floating point", Reason.NUMERIC_DIVERGENCE, r"^FloatingPointError\b"),
    _error(
        "loss guard",
        Reason.NUMERIC_DIVERGENCE,
        r"\bloss\b.{0,40}\b(is|became|was|=|:) ?(nan|inf|not finite|non-?finite)\b",
        r"\bnon-?finite loss\b",
    ),
    # Data: decoders' own error types. Schema first: pyarrow raises ArrowInvalid for both.
    _error(
        "arrow schema",
        Reason.DATA_SCHEMA_DRIFT,
        r"field names are not matching",
        r"^pyarrow\.lib\.Arrow(Invalid|TypeError|NotImplementedError|KeyError): .*\b(schema|cast|field)\b",
        r"^pandera\.errors\.Schema",
    ),
    _error("text encoding", Reason.DATA_CORRUPT, r"^UnicodeDecodeError\b"),
    _error("image decoder", Reason.DATA_CORRUPT, r"^PIL\.UnidentifiedImageError\b"),
    _error(
        "compressed data",
        Reason.DATA_CORRUPT,
        r"^(zlib\.error|_?lzma\.LZMAError|zipfile\.BadZipFile|tarfile\.ReadError)\b",
    ),
    # Checkpoints of another shape: torch.nn.Module.load_state_dict and torch.optim.
    _error("state dict", Reason.CHECKPOINT_INCOMPATIBLE, r"Error\(s\) in loading state_dict for\b"),
    _error(
        "optimizer state",
        Reason.CHECKPOINT_INCOMPATIBLE,
        r"loaded state dict (contains a parameter group that doesn't match|has a different number of parameter groups)",
    ),
    # Meeting: torch.distributed.rendezvous and its TCPStore, before there is a group.
    _row(
        "rendezvous port",
        Reason.RENDEZVOUS_FAILED,
        r"EADDRINUSE",
        r"(server socket|listen).*address already in use",
        r"failed to listen on any local network address",
    ),
    _error("elastic rendezvous", Reason.RENDEZVOUS_FAILED, r"\bRendezvous(Timeout|Connection|Closed|State)Error\b"),
    _error(
        "clients missing", Reason.RENDEZVOUS_FAILED, r"waiting for clients\. \d+/\d+ clients joined", part=_CONSEQUENCE
    ),
    _error(
        "store not there",
        Reason.RENDEZVOUS_FAILED,
        r"client socket has timed out after",
        r"TCPStore.*(timed out|timeout)",
        part=_CONSEQUENCE,
    ),
    _error(
        "key never set",
        Reason.RENDEZVOUS_FAILED,
        r"^torch\.distributed\.DistStoreError: .*(wait timeout|timed out)",
        part=_CONSEQUENCE,
    ),
    # Collectives that gave up: NCCL's watchdog, gloo's transport. The hang was before.
    _row(
        "collective watchdog",
        Reason.COLLECTIVE_TIMEOUT,
        r"watchdog caught collective operation timeout",
        r"watchdog got stuck",
        r"collective operation timed? ?out",
        part=_CONSEQUENCE,
    ),
    _row(
        "collective wait",
        Reason.COLLECTIVE_TIMEOUT,
        r"(recv|send|wait|connect) operation .*timed out",
        r"timed out waiting \d+ ?ms for (recv|send)",
        r"monitoredBarrier",
        part=_CONSEQUENCE,
    ),
    # A loader's worker died first; the host's side of the evidence may say of what.
    _error(
        "loader worker",
        Reason.UNKNOWN_KILL,
        r"DataLoader worker .*(killed by signal|exited unexpectedly)",
        part=_CONSEQUENCE,
    ),
    # Peers that are gone.
    _error("torch distributed", Reason.NETWORK_FABRIC, r"\bDist(Backend|Network|Store)?Error\b", part=_CONSEQUENCE),
    _error(
        "peer gone",
        Reason.NETWORK_FABRIC,
        r"^(ConnectionResetError|ConnectionAbortedError|BrokenPipeError)\b",
        part=_CONSEQUENCE,
    ),
    _row("transport, then peer", Reason.NETWORK_FABRIC, _TRANSPORT + ".*" + _PEER_GONE, part=_CONSEQUENCE),
    _row("peer, then transport", Reason.NETWORK_FABRIC, _PEER_GONE + ".*" + _TRANSPORT, part=_CONSEQUENCE),
    # Python and argparse about their command line.
    _line("no such script", Reason.CONFIG_INVALID, r"can't open file '.*': \[Errno 2\]"),
    _line(
        "arguments",
        Reason.CONFIG_INVALID,
        r"error: (unrecognized arguments|the following arguments are required|argument \S+: )",
    ),
)
