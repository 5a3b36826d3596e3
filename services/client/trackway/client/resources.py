"""What the services answer, as frozen dataclasses: the service messages of the same fields.

Words, enums and embedded messages are those of ``trackway_common.events``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trackway_common.events import (
    AttemptShape,
    CheckpointPhase,
    CheckpointRef,
    ComputeOffer,
    EvaluationCompleted,
    EvaluationFailed,
    EvaluationPackRef,
    EvaluationPhase,
    FailureDomain,
    RetryDecided,
    RunPhase,
    RunSpec,
    TerminationReason,
    Violation,
)
from trackway_common.history.explain.model import Explanation as ExplanationParts
from trackway_common.history.goodput import Goodput

ENDED_PHASES = frozenset({RunPhase.SUCCEEDED, RunPhase.FAILED, RunPhase.CANCELLED, RunPhase.REFUSED})
"""A run in one of these gets no more facts of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """What was spent of one of a run's budgets."""

    ledger: str
    """A reason, ``ceiling`` or ``max_attempts``."""
    spent: int
    budget: int
    """-1 is unlimited."""
    counts: str
    """What it is counted over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a user asked for, and how far it got."""

    name: str
    run_id: str
    phase: RunPhase
    spec: RunSpec | None
    submitted_at: datetime | None
    ended_at: datetime | None
    attempt: int
    reason: str
    message: str
    last_committed: CheckpointRef | None
    decisions: tuple[RetryDecided, ...]
    evaluation_id: str
    violations: tuple[Violation, ...]
    shape: AttemptShape | None
    """What the newest attempt, or the queued one, runs with; None: exactly the spec's."""
    ledgers: tuple[LedgerState, ...]

    @property
    def ended(self) -> bool:
        """True when nothing more will happen to it."""
        return self.phase in ENDED_PHASES


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFact:
    """One fact of a run's history, as ``watch`` yields it."""

    cursor: str
    """Continues behind this fact when given to ``watch``."""
    fact: str
    stream: str
    sequence: int
    occurred_at: datetime | None
    fields: Mapping[str, object]
    phase: RunPhase
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line that a rank printed."""

    attempt: int
    rank: int
    at_ms: int
    stream: str
    text: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """What an agent's classifier makes of an attempt that ended before."""

    before: TerminationReason
    """Verdict in force until now."""
    version_before: str
    reason: TerminationReason
    classifier_version: str
    confidence: float
    cause: str
    recorded: bool
    """False: the same verdict, or a classifier that is no newer; nothing was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try of the cluster at a run."""

    name: str
    run_id: str
    attempt: int
    state: str
    reason: TerminationReason
    domain: FailureDomain
    cause: str
    pool: str
    accelerators: int
    gpu_seconds: float
    started_at: datetime | None
    ended_at: datetime | None
    first_step: int
    last_step: int
    resumed_from: CheckpointRef | None
    last_committed: CheckpointRef | None
    model_family: str
    receipt: Mapping[str, object]
    """Every column of ``training_attempts``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why an attempt ended the way it did."""

    name: str
    text: str
    markdown: str
    detail: Mapping[str, object]
    records_behind: int
    """Log records that the read model had not seen; 0 when it is up to date."""
    postmortem: str
    """A filled-in incident report, Markdown."""
    parts: ExplanationParts
    """The same as ``detail``, typed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodputAnswer:
    """Where the time of a run's attempts went."""

    goodput: Goodput
    records_behind: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A registered snapshot."""

    name: str
    """``projects/{project}/datasets/{dataset}@{manifest_digest}``."""
    dataset: str
    manifest_digest: str
    files: int
    size_bytes: int
    splits: tuple[str, ...]
    registered_at: datetime | None
    manifest: bytes
    """Canonical JSON; empty in listings."""

    @property
    def project(self) -> str:
        """Project that it belongs to."""
        return self.name.split("/")[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A checkpoint as its run's commit log has it."""

    name: str
    ref: CheckpointRef
    phase: CheckpointPhase
    parent: CheckpointRef | None
    path: str
    size_bytes: int
    world_size: int
    samples_consumed: int
    config_digest: str
    dataset_digests: tuple[str, ...]
    committed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCheck:
    """What reading every byte of a checkpoint showed."""

    ok: bool
    files: int
    size_bytes: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One evaluation pack run against one committed checkpoint."""

    name: str
    evaluation_id: str
    run_id: str
    phase: EvaluationPhase
    pack: EvaluationPackRef | None
    checkpoint: CheckpointRef | None
    evaluation_attempt: int
    failures: tuple[EvaluationFailed, ...]
    result: EvaluationCompleted | None
    requested_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Named capacity and what it offers."""

    name: str
    agent_id: str
    reachable: bool
    cpus: float
    cpus_free: float
    accelerators: int
    accelerators_free: int
    memory_bytes: int
    offers: tuple[ComputeOffer, ...]
    python_version: str
    environment_digest: str
    running_attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """Rows of one SELECT over the contract views."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    truncated: bool
    """True when there were more rows than asked for."""
    records_behind: int
