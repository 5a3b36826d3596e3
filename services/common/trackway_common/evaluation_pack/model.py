"""What a pack says, after defaults are filled in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Adapter(StrEnum):
    """Who runs the tasks."""

    BUILTIN = "builtin"
    """Scorers of this project, in torch."""
    COMMAND = "command"
    """Any program that reads request.json and writes shards and result.json."""


class TaskKind(StrEnum):
    """How a task is scored."""

    CLASSIFICATION = "classification"
    BITS_PER_BYTE = "bits_per_byte"
    COMPLETION = "completion"
    COMMAND = "command"
    """Scored by the adapter's own program."""


class GateOp(StrEnum):
    """How a gate compares a metric's value with its threshold."""

    AT_LEAST = ">="
    ABOVE = ">"
    AT_MOST = "<="
    BELOW = "<"


METRICS_OF: dict[TaskKind, dict[str, bool]] = {
    TaskKind.CLASSIFICATION: {"accuracy": True, "log_loss": False},
    TaskKind.BITS_PER_BYTE: {"bits_per_byte": False},
    TaskKind.COMPLETION: {"exact_match": True, "matching_prefix": True, "output_length": True},
    TaskKind.COMMAND: {},
}
"""Metrics that a kind can report, and whether higher is better. A command may name its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatorSpec:
    """Which program evaluates."""

    adapter: Adapter
    command: tuple[str, ...] = ()
    """Argv of a COMMAND adapter; the request's path is appended."""
    batch_size: int = 32
    """Samples at once; halved after an out-of-memory failure. A score does not depend on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """One number that a task reports."""

    name: str
    higher_is_better: bool
    primary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec:
    """One measurement on one split of one of the run's datasets."""

    id: str
    version: str
    """The author's; a changed meaning needs a new one."""
    kind: TaskKind
    dataset: str
    split: str
    limit: int
    """Samples at most; 0 is all."""
    data: str
    """`module:function(files, split, limit)` of the code archive, which yields the samples."""
    decode: str
    """`module:function(token_ids) -> str` for a completion's raw outputs; empty keeps the ids."""
    context: int
    """Tokens that the model sees at once, the oldest dropped; 0 is no bound."""
    metrics: tuple[MetricSpec, ...]
    slices: tuple[str, ...]
    """Sample fields by whose values the metrics are split as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """How a completion is sampled."""

    temperature: float = 0.0
    """0 is greedy."""
    top_p: float = 1.0
    max_tokens: int = 32
    stop_tokens: tuple[int, ...] = ()
    """Token ids that end a completion and are no part of it."""
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What a metric must reach."""

    task: str
    metric: str
    op: GateOp
    threshold: float
    blocking: bool = True
    """A miss fails the run; otherwise it is only recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What is kept of the samples besides their metrics."""

    raw_outputs: bool = True
    failures: int = 20
    """Failed samples kept, in the order they were planned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPack:
    """A whole pack."""

    name: str
    evaluator: EvaluatorSpec
    tasks: tuple[TaskSpec, ...]
    decoding: Decoding = Decoding()
    gates: tuple[Gate, ...] = ()
    capture: Capture = Capture()
