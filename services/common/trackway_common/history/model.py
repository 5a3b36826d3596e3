"""What a run's facts add up to: everything that happened, nothing that is only computed from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trackway_common.events import (
    AttemptEnded,
    AttemptPlaced,
    AttemptReclassified,
    AttemptRefused,
    AttemptRunning,
    AttemptStarted,
    AttemptStarting,
    AttemptStopping,
    AttemptWrittenOff,
    CancelRequested,
    CheckpointAbandoned,
    CheckpointCommitted,
    CheckpointPhase,
    CheckpointStarted,
    EnvironmentObserved,
    EvaluationCompleted,
    EvaluationExhausted,
    EvaluationFailed,
    EvaluationPhase,
    EvaluationRequested,
    EvaluationStarted,
    FinalEvaluationOrdered,
    ResumeTargetChosen,
    RetryDecided,
    RunPhase,
    RunQueued,
    RunRefused,
    RunReleased,
    RunSpec,
    RunSubmitted,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One fact in the run's common timeline."""

    at: datetime
    """When it happened by its own account; the commit's time where the fact has none."""
    stream: str
    sequence: int
    fact: str
    attempt: int | None
    """Attempt that it concerns, None where it concerns the whole run."""
    text: str
    """One line for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptHistory:
    """One try of the cluster at the run, fact by fact."""

    attempt: int
    queued: tuple[RunQueued, ...] = ()
    placed: AttemptPlaced | None = None
    refused: AttemptRefused | None = None
    written_off: AttemptWrittenOff | None = None
    starting: AttemptStarting | None = None
    resume: ResumeTargetChosen | None = None
    started: AttemptStarted | None = None
    environments: tuple[EnvironmentObserved, ...] = ()
    running: AttemptRunning | None = None
    captures: tuple[CheckpointStarted, ...] = ()
    abandoned: tuple[CheckpointAbandoned, ...] = ()
    stopping: AttemptStopping | None = None
    ended: AttemptEnded | None = None
    """After a write-off it is late evidence, which changes no decision."""
    reclassified: AttemptReclassified | None = None
    """The newest verdict of a later classifier, where it differs; no decision hangs on it."""
    decision: RetryDecided | None = None
    claims: int = 0
    """Agents that took the attempt over; more than 1 after a restart of its agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointHistory:
    """One commit of the run's commit log and what later slots said about it."""

    committed: CheckpointCommitted
    phase: CheckpointPhase = CheckpointPhase.COMMITTED
    holders: tuple[str, ...] = ()
    superseded_by: str = ""
    """Policy that superseded it."""
    quarantined_why: str | None = None
    """Set once it was quarantined, whatever happened to it after."""
    tombstoned: bool = False
    freed_bytes: int = 0

    @property
    def slot(self) -> int:
        return self.committed.checkpoint.slot


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationTry:
    """One attempt of the evaluator; never an attempt of the run."""

    number: int
    started: EvaluationStarted | None = None
    failed: EvaluationFailed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationHistory:
    """One evaluation of one committed checkpoint."""

    evaluation_id: str
    phase: EvaluationPhase = EvaluationPhase.REQUESTED
    ordered: FinalEvaluationOrdered | None = None
    requested: EvaluationRequested | None = None
    tries: tuple[EvaluationTry, ...] = ()
    completed: EvaluationCompleted | None = None
    exhausted: EvaluationExhausted | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistory:
    """A run, as its facts tell it."""

    run_id: str
    phase: RunPhase = RunPhase.UNSPECIFIED
    submitted: RunSubmitted | None = None
    refused: RunRefused | None = None
    cancel: CancelRequested | None = None
    phase_reason: str = ""
    """Token of the fact that put the run into this phase, where it carries one."""
    phase_message: str = ""
    phase_at: datetime | None = None
    attempts: tuple[AttemptHistory, ...] = ()
    """By number; a number is missing only where the facts given are."""
    checkpoints: tuple[CheckpointHistory, ...] = ()
    """By slot."""
    fences: tuple[int, ...] = ()
    """Epochs, in the order in which they were raised."""
    evaluations: tuple[EvaluationHistory, ...] = ()
    """In the order in which they were asked for."""
    timeline: tuple[Moment, ...] = ()
    releases: tuple[RunReleased, ...] = ()
    """Times that a person let the held run go on."""
    traceparent: str = ""
    """Of the commit that submitted the run."""
    unknown_facts: int = 0
    """Facts of a newer schema, which this build passed over."""

    @property
    def spec(self) -> RunSpec | None:
        """None of a run that was refused, or whose submission is not among the facts given."""
        return self.submitted.spec if self.submitted else None

    @property
    def ended(self) -> bool:
        return self.phase in {RunPhase.SUCCEEDED, RunPhase.FAILED, RunPhase.CANCELLED, RunPhase.REFUSED}

    def attempt(self, number: int) -> AttemptHistory | None:
        """The attempt of this number."""
        return next((attempt for attempt in self.attempts if attempt.attempt == number), None)
