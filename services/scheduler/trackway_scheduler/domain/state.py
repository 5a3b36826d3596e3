"""States of the streams that the scheduler owns, each a fold over its stream's facts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from trackway_common.events import (
    AttemptPlaced,
    AttemptShape,
    CancelRequested,
    Change,
    CheckpointRef,
    DatasetRegistered,
    EvaluationPackRegistered,
    FinalEvaluationOrdered,
    PoolObserved,
    RetryDecided,
    RunPhase,
    RunQueued,
    RunSpec,
    TerminationReason,
    Violation,
)

ENDED = frozenset({RunPhase.REFUSED, RunPhase.SUCCEEDED, RunPhase.FAILED, RunPhase.CANCELLED})
"""Phases that no fact leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Retries that were granted: what budgets are counted in."""

    since_progress: tuple[TerminationReason, ...] = ()
    """Since the last newly committed checkpoint."""
    lifetime: tuple[TerminationReason, ...] = ()
    progress_step: int | None = None
    """Highest committed step that a decision has seen; None before the first commit."""
    uncounted: int = 0
    """Attempts that were retried and are none of the run's `max_attempts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """Stream runs/{run}."""

    run_id: str
    phase: RunPhase = RunPhase.UNSPECIFIED
    """UNSPECIFIED: nobody submitted it yet."""
    project: str = ""
    model_family: str = ""
    owner: str = ""
    spec: RunSpec | None = None
    """None when it was refused."""
    request_digest: str = ""
    submitted_at: datetime | None = None
    """Also of a refused run: when it was refused."""
    ended_at: datetime | None = None
    attempt: int = 0
    """Newest attempt that was placed; 0 before the first."""
    queued: RunQueued | None = None
    """The wait it is in; only while QUEUED."""
    placed: AttemptPlaced | None = None
    """Where the newest attempt was placed; it is live while RUNNING."""
    cancel: CancelRequested | None = None
    ledger: Ledger = Ledger()
    shape: AttemptShape | None = None
    """What the newest attempt, or the queued one, differs in from the spec; None: in nothing."""
    changes: tuple[Change, ...] = ()
    """What was decided to change for the queued attempt."""
    decisions: tuple[RetryDecided, ...] = ()
    last_committed: CheckpointRef | None = None
    """Newest commit that a decision has seen."""
    evaluation: FinalEvaluationOrdered | None = None
    evaluation_round: int = 0
    """How often that evaluation was ordered: again after each release."""
    reason: str = ""
    """Token for why it is where it is."""
    message: str = ""
    violations: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetState:
    """Stream datasets/{project}/{name}."""

    project: str
    name: str
    snapshots: tuple[DatasetRegistered, ...] = ()
    """Newest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackState:
    """Stream packs/{name}."""

    name: str
    versions: tuple[EvaluationPackRegistered, ...] = ()
    """Newest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolState:
    """Stream pools/{pool}."""

    pool: str
    observed: PoolObserved | None = None


State: TypeAlias = RunState | DatasetState | PackState | PoolState


def initial(stream: str) -> State:
    """State of a stream before its first fact, by the stream's kind."""
    kind, _, name = stream.partition("/")
    match kind:
        case "datasets":
            project, _, name = name.rpartition("/")
            return DatasetState(project=project, name=name)
        case "packs":
            return PackState(name=name)
        case "pools":
            return PoolState(pool=name)
        case _:
            return RunState(run_id=name)
