"""The sections of an explanation, before they are laid out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trackway_common.events import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What happened, in one breath."""

    headline: str
    """A termination reason, or the phase of a run that has none yet."""
    domain: str
    confidence: float | None
    """0..1; None where nothing had to be judged."""
    sentence: str
    """The cause."""
    outcome: str
    """What followed, up to where the run is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """What a newer classifier made of the same observations; nothing that was decided hangs on it."""

    at: datetime
    reason: str
    domain: str
    confidence: float
    cause: str
    classifier_version: str
    version_before: str
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLine:
    """One attempt among all of the run's."""

    attempt: int
    reason: str
    resumed_from_step: int | None
    first_step: int
    last_step: int
    steps_lost: int
    gpu_seconds: float
    next_move: str
    explained: bool
    """True for the attempt that this explanation is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """One dataset snapshot."""

    name: str
    requested: str
    digest: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """Which program, configuration, environment and data."""

    entrypoint: str
    entrypoint_kind: str
    owner: str
    experiment: str
    hypothesis: str
    seed: int
    deterministic: bool
    config_digest: str
    hyperparameters_json: str
    compared_with: int | None
    """Attempt that ``changes`` is the difference to; None for the first."""
    changes: tuple[Change, ...]
    code_requested: str
    code_digest: str
    git_commit: str
    dirty: bool
    environment_kind: str
    environment_digest: str
    python_version: str
    environment_notes: tuple[str, ...]
    data: tuple[Data, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One rank of the placement and how its process ended."""

    rank: int
    node: str
    device: str
    pid: int
    ended: str
    last_step: int | None
    peak_memory_bytes: int | None
    blamed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The placement."""

    pool: str
    compute_class: str
    accelerators: int
    accelerator_kind: str
    agent_id: str
    takeovers: int
    """Times that an agent took the attempt over again, such as after its own restart."""
    cluster_id: str
    ranks: tuple[Rank, ...]
    blamed: str
    """Entity that the evidence points at; empty when none."""
    excluded_nodes: tuple[str, ...]
    """Nodes that the attempt was kept away from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRow:
    """A mark in time and what the time since the mark before was spent on."""

    at: datetime
    gap_seconds: float
    gap: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One piece of evidence."""

    source: str
    authority: str
    role: str
    excerpt: str
    ranks: tuple[int, ...]
    """Ranks on which the same was seen."""
    at: datetime | None
    blob_digest: str
    text: str
    """First lines of what the digest names; empty where that was not at hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """Observations that only followed from the cause, collapsed into one line."""

    role: str
    count: int
    ranks: tuple[int, ...]
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSection:
    """Why this reason and no other."""

    supporting: tuple[Observation, ...]
    against: tuple[Observation, ...]
    """Seen, and speaking for something else."""
    undecided: tuple[Observation, ...]
    """Seen, and speaking for nothing."""
    cascades: tuple[Cascade, ...]
    silent: tuple[str, ...]
    """What would have outranked the evidence that decided, and was not there."""
    notes: tuple[str, ...]
    """What speaks to the verdict from outside of this attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSection:
    """What was used, produced and lost."""

    resumed_from: str
    resumed_from_step: int | None
    produced: tuple[str, ...]
    last_committed: str
    last_committed_step: int | None
    in_flight: tuple[str, ...]
    """Captured, neither committed nor abandoned."""
    steps_lost: int
    gpu_seconds_lost: float
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What part of the time that the accelerators were held for was spent on one thing."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What it took."""

    gpu_seconds: float
    amount: float
    currency: str
    price: float
    price_since: str
    accelerators: int
    accelerator_kind: str
    queue_seconds: float
    wall_seconds: float
    spent: tuple[Spending, ...]
    """What the wall time was spent on; the parts add up to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the scheduler decided after the attempt, by which budget."""

    at: datetime
    move: str
    why: str
    ledger: str
    spent: int
    budget: int
    counting: str
    backoff_seconds: float
    progress: str
    """ADVANCED or NONE: whether a checkpoint was newly committed, which is what most budgets hang on."""
    next_attempt: int | None
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Why a run does not run now."""

    token: str
    sentence: str
    since: datetime
    not_before: datetime | None
    ahead: int | None
    """Runs of the pool that were queued earlier; None when unknown, such as offline."""
    holders: tuple[str, ...]
    """Attempts that hold the pool now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationLine:
    """One evaluation and what it found."""

    evaluation_id: str
    pack: str
    checkpoint: str
    state: str
    evaluator_version: str
    tries: int
    results: tuple[str, ...]
    gates: tuple[str, ...]
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Something to type, and what for."""

    purpose: str
    command: str
