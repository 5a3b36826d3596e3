"""What the agent can order for an attempt. Times and texts arrive inside the command."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from trackway_common.events import (
    AttemptEnded,
    AttemptReclassified,
    CheckpointRef,
    EnvironmentObserved,
    Evidence,
    PhaseSeconds,
    RankStarted,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginAttempt:
    """Take on what the scheduler placed here."""

    run_id: str
    attempt: int
    epoch: int
    agent_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseResumeTarget:
    """Continue from this checkpoint, or from step 0."""

    checkpoint: CheckpointRef | None
    passed_over: tuple[Evidence, ...]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAttempt:
    """Every rank's program was executed."""

    cluster_id: str
    ranks: tuple[RankStarted, ...]
    at: datetime
    """When the cluster granted the resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportEnvironment:
    """A rank said what its interpreter holds."""

    observed: EnvironmentObserved


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFirstStep:
    """Some rank finished the attempt's first step."""

    step: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCheckpoint:
    """Every rank captured its part."""

    step: int
    nonce: str
    size_bytes: int
    blocked_seconds: float
    at: datetime
    phases: PhaseSeconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonCheckpoint:
    """A checkpoint will never be complete."""

    step: int
    nonce: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAttempt:
    """Have the ranks stop."""

    why: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EndAttempt:
    """Close the attempt with its receipt."""

    receipt: AttemptEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordVerdict:
    """A classifier judged the ended attempt again."""

    verdict: AttemptReclassified


AttemptCommand: TypeAlias = (
    BeginAttempt
    | ChooseResumeTarget
    | StartAttempt
    | ReportEnvironment
    | ReportFirstStep
    | StartCheckpoint
    | AbandonCheckpoint
    | StopAttempt
    | EndAttempt
    | RecordVerdict
)
