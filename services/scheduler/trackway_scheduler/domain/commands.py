"""What can be asked of the scheduler's streams. Times, randomness and other services' facts arrive in here."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from trackway_common.events import (
    CheckpointRef,
    ComputeOffer,
    Evidence,
    RankPlacement,
    RunSpec,
    TerminationReason,
    Verdict,
    Violation,
)

from trackway_scheduler.domain.ladder import Room


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitRun:
    """Queue a run whose inputs are all pinned."""

    run_id: str
    spec: RunSpec
    request_digest: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RefuseRun:
    """Record that a submission could not be accepted."""

    run_id: str
    request_digest: str
    message: str
    violations: tuple[Violation, ...]
    project: str
    model_family: str
    owner: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceAttempt:
    """Give a queued run its resources, all ranks at once."""

    attempt: int
    pool: str
    agent_id: str
    ranks: tuple[RankPlacement, ...]
    captures_in_flight: tuple[str, ...]
    at: datetime
    shortfall: str = ""
    """Why fewer ranks than the whole gang are given; empty for the whole one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnd:
    """How an attempt ended, and what it leaves."""

    attempt: int
    reason: TerminationReason
    cause: str
    """One sentence for people."""
    last_committed: CheckpointRef | None
    jitter: float
    """0..1, drawn by the caller."""
    at: datetime
    blamed_node: str | None = None
    room: Room = field(default_factory=Room)
    """Of the run's pool, as it was last seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAttemptEnded:
    """Decide what follows an attempt that its agent reported as ended."""

    end: AttemptEnd


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOffAttempt:
    """End an attempt whose agent can't speak any more, and decide what follows."""

    end: AttemptEnd
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRun:
    """Stop the run for good."""

    actor: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRun:
    """Let a held run go on."""

    actor: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEvaluationCompleted:
    """Conclude the run by its final evaluation's verdict."""

    evaluation_id: str
    verdict: Verdict
    failed_gates: tuple[str, ...]
    """The blocking ones, a sentence each."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEvaluationExhausted:
    """Hold the run: its final evaluation used up its own budget."""

    evaluation_id: str
    message: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRefusal:
    """Keep a command that was refused, with who asked."""

    command: str
    actor: str
    reason: str
    message: str
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterDataset:
    """Put a manifest under its name, in its project."""

    manifest_digest: str
    files: int
    size_bytes: int
    splits: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterPack:
    """Put an evaluation pack under its name."""

    digest: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservePool:
    """Record what a pool offers now."""

    agent_id: str
    cluster_id: str
    cpus: float
    accelerators: int
    memory_bytes: int
    environment_digest: str
    python_version: str
    offers: tuple[ComputeOffer, ...]
    at: datetime


RunCommand: TypeAlias = (
    SubmitRun
    | RefuseRun
    | PlaceAttempt
    | RecordAttemptEnded
    | WriteOffAttempt
    | CancelRun
    | ReleaseRun
    | RecordEvaluationCompleted
    | RecordEvaluationExhausted
    | RecordRefusal
)
Command: TypeAlias = RunCommand | RegisterDataset | RegisterPack | ObservePool
