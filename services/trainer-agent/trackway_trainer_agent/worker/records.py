"""What an actor tells the agent: numbered records, pulled with a cursor.

Facts are kept until the actor is closed and can be read again from 0; telemetry is kept until the cursor passed it,
thinned when nobody reads. Importable without torch or Ray. ``at_ms`` is the node's wall clock, for people; order is
the record number.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

from trackway_common.rank_protocol.phases import Phases


class RankPhase(StrEnum):
    """Where the actor stands."""

    IDLE = "idle"
    """No ``start()`` yet."""
    PREPARING = "preparing"
    """Code and inputs are being materialised."""
    RUNNING = "running"
    """The trainer's process lives."""
    SAVING = "saving"
    """The trainer is gone; a captured checkpoint is still being written."""
    ENDED = "ended"
    """Nothing more will happen: every record is in the buffer, ``TrainerExited`` or ``LaunchFailed`` among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerStarted:
    """The user's process was executed."""

    pid: int
    argv: tuple[str, ...]
    device: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFailed:
    """The user's process never ran; the last record of the rank."""

    stage: Literal["code", "inputs", "resume", "execute"]
    message: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentReported:
    """What the trainer's own interpreter holds."""

    python_version: str
    torch_version: str
    """Empty where torch is not installed."""
    device: str
    host: str
    environment_digest: str
    """Over the Python version and every distribution with its version: comparable between nodes."""
    report_json: str
    """Everything that was seen: distributions, CUDA, driver, platform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStepReported:
    """The first step that this attempt finished, as the SDK reported it. A plain script never has one."""

    step: int
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhasesMeasured:
    """Where the time of this rank's session had gone at a moment."""

    phases: Phases
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCaptured:
    """This rank's state is in the actor's keeping: in its memory, or a folder that the program finished. It is saved
    even when the trainer dies now."""

    step: int
    nonce: str
    size_bytes: int
    blocked_seconds: float
    world_size: int
    """Receipts that will make the checkpoint complete: the attempt's ranks, or 1 for a folder."""
    samples_consumed: int
    metrics: tuple[tuple[str, float], ...]
    """The last reported values of this step."""
    at_ms: int
    phases: PhasesMeasured | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPersisted:
    """This rank's shards and its receipt are durable."""

    step: int
    nonce: str
    receipt_path: str
    """Relative to the run's folder in the store."""
    size_bytes: int
    seconds: float
    world_size: int
    """Receipts that make the checkpoint complete: the attempt's ranks, or 1 for a directory."""
    samples_consumed: int
    metrics: tuple[tuple[str, float], ...]
    kind: Literal["session", "directory"]
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointAbandoned:
    """This rank's part of a checkpoint will never be on disk; training goes on."""

    step: int
    nonce: str
    why: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFrame:
    """One frame of a traceback, innermost last."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRecord:
    """The exception that ended a trainer."""

    source: Literal["sdk", "torchelastic", "stderr"]
    """``stderr`` was read from printed text: a log signature, not a structured record."""
    exception_type: str
    """Qualified name, such as ``torch.OutOfMemoryError``."""
    message: str
    chain: tuple[str, ...]
    """``type: message`` of its causes, nearest first."""
    frames: tuple[ErrorFrame, ...]
    """At most 12, innermost last."""
    trackway_reason: str | None
    """Termination reason that the exception itself names, such as ``DATA_CORRUPT``."""
    step: int | None
    monotonic_ns: int | None
    """The node's monotonic clock: orders errors of ranks on one node."""
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesystemState:
    """Room on one filesystem."""

    mount: str
    free_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """One accelerator."""

    device: str
    problem: str
    """Empty: nothing has gone wrong since the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What the node says about itself at the trainer's end."""

    memory_bound_bytes: int = 0
    """0: the trainer's memory has no bound."""
    killed_over_bound_bytes: int = 0
    """What the trainer used when it was killed for it; 0: it was not."""
    filesystems: tuple[FilesystemState, ...] = ()
    kernel_lines: tuple[str, ...] = ()
    devices: tuple[DeviceState, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleMatched:
    """A rule of the run's spec says what the end means."""

    reason: str
    rule: str
    matched: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerExited:
    """How the trainer ended, with all that the node knows about it. Sent once; later only saves are reported."""

    exit_code: int | None
    """Absent when a signal ended it, or when the status is unknown because the launcher was killed."""
    signal: str | None
    """Such as ``SIGKILL``."""
    error: ErrorRecord | None
    stderr_tail: tuple[str, ...]
    """At most 50 lines."""
    last_step: int
    peak_memory_bytes: int
    oom_kills: int | None
    """Kills that the memory cgroup counted while it ran; absent where the counter can't be read."""
    stop_requested: bool
    """The actor was told to stop or kill it before it ended."""
    started_at_ms: int
    ended_at_ms: int
    monotonic_ns: int
    phases: PhasesMeasured | None = None
    """By its session's last word; absent where none was opened."""
    host: HostReport = HostReport()
    rule: RuleMatched | None = None
    stopped_at_ms: int | None = None
    """When the actor was told; absent when it was not."""
    last_oom_kill_at_ms: int | None = None
    """When the cgroup counted the last kill; absent when it counted none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMetrics:
    """Values reported for a step."""

    step: int
    values: tuple[tuple[str, float], ...]
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line of the trainer's output, cut at 4 KiB."""

    stream: Literal["stdout", "stderr"]
    text: str
    step: int
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSample:
    """What the trainer and its descendants use."""

    memory_bytes: int
    cpu_percent: float
    at_ms: int


Fact: TypeAlias = (
    TrainerStarted
    | LaunchFailed
    | EnvironmentReported
    | FirstStepReported
    | CheckpointCaptured
    | CheckpointPersisted
    | CheckpointAbandoned
    | TrainerExited
)
"""Never dropped, never thinned."""
Telemetry: TypeAlias = StepMetrics | LogLine | ResourceSample
"""Dropped when read, thinned when not read in time."""
Record: TypeAlias = Fact | Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A record with its place in the rank's history; numbers start at 1 and have gaps where telemetry was thinned."""

    number: int
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """A trainer has shown no progress for longer than it may."""

    silent_s: float
    limit_s: float
    stepped: bool
    """It had finished a step before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainBatch:
    """Answer to ``drain(after)``; the same question gives the same facts again."""

    records: tuple[Numbered, ...]
    cursor: int
    """``after`` of the next call."""
    more: bool
    """Further records were there already."""
    phase: RankPhase
    last_step: int
    dropped_metrics: int
    """Step metrics and resource samples thinned since the start."""
    dropped_logs: int
    """Lines dropped since the start."""
    at_ms: int
    phases: PhasesMeasured | None = None
    """By the session's last word; absent where none was opened."""
    overdue: Overdue | None = None
    """Absent while it gets on, or where nothing is expected of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDescription:
    """Where an actor is, before anything runs."""

    node: str
    """Ray's node id, else the host's name."""
    host: str
    address: str
    """IP that other ranks reach."""
    free_port: int
    """Held until ``start()``; rank 0's is the attempt's MASTER_PORT."""
    actor_pid: int
    python: str
    python_version: str
    devices: tuple[str, ...]
    """Devices granted to this actor, as CUDA_VISIBLE_DEVICES names them."""
    cpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StackDump:
    """Answer to ``stacks()``."""

    source: Literal["faulthandler", "kernel", "none"]
    """``faulthandler``: Python frames of every thread, from a process that uses the SDK. ``kernel``: where each thread
    of another program waits. ``none``: nothing runs."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong:
    """Answer to ``ping()``."""

    phase: RankPhase
    last_step: int
    trainer_pid: int | None
    newest_record: int
