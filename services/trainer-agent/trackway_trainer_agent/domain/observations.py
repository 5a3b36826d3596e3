"""What was seen of an attempt that came to an end; the input of the classifier."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from trackway_common.events import TerminationReason


class ErrorSource(StrEnum):
    """Who wrote an error down."""

    PROCESS = "process"
    """The dying process itself, in its error file."""
    PRINTED = "printed"
    """Nobody: it was read from printed text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One frame of a traceback."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorSeen:
    """The exception that ended a rank's program."""

    source: ErrorSource
    exception_type: str
    """Qualified name."""
    message: str
    chain: tuple[str, ...] = ()
    """``type: message`` of its causes, nearest first."""
    frames: tuple[Frame, ...] = ()
    """Innermost last."""
    trackway_reason: str | None = None
    """Reason that the exception itself names."""
    step: int | None = None
    monotonic_ns: int | None = None
    at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Filesystem:
    """Room on a filesystem that a rank writes to."""

    mount: str
    free_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHealth:
    """What the driver says of an accelerator."""

    device: str
    problem: str
    """Empty: nothing is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What the node says about itself at a rank's end."""

    oom_kills: int | None = None
    """Kills that the memory cgroup counted while the rank ran; absent where nobody counts."""
    last_oom_kill_at_ms: int | None = None
    """When it counted the last of them; absent where none was counted, or where nobody knows."""
    memory_bound_bytes: int = 0
    """Bound that the rank's own memory had; 0: none."""
    killed_over_bound_bytes: int = 0
    """What it used when its actor killed it for going over the bound; 0: it did not."""
    filesystems: tuple[Filesystem, ...] = ()
    kernel_lines: tuple[str, ...] = ()
    """Since the rank's start, naming one of its processes or a device."""
    devices: tuple[DeviceHealth, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleHit:
    """A rule of the run's spec that matched what the rank did."""

    reason: TerminationReason
    rule: str
    """Such as ``failure_rules[0]``."""
    matched: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankExit:
    """A rank's program ended; all that its node knows."""

    rank: int
    node: str
    exit_code: int | None
    """Absent when a signal ended it, or when nothing is known."""
    signal: str | None
    error: ErrorSeen | None = None
    stderr_tail: tuple[str, ...] = ()
    last_step: int = 0
    peak_memory_bytes: int = 0
    host: HostFacts = HostFacts()
    rule: RuleHit | None = None
    stop_sent_at_ms: int | None = None
    """When it was told to stop, by the clock of its node; absent when it ended of itself."""
    ended_at_ms: int = 0
    monotonic_ns: int = 0
    """The node's monotonic clock: orders ends on one node."""


class SubstrateCause(StrEnum):
    """What Ray says about an actor that is gone."""

    NODE_DIED = "node_died"
    PREEMPTED = "preempted"
    DRAINED = "drained"
    OUT_OF_MEMORY = "out_of_memory"
    KILLED_BY_US = "killed_by_us"
    UNEXPLAINED = "unexplained"
    """The actor's process vanished and Ray does not say why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLost:
    """A rank's actor is gone, and with it the rank; Ray's own words."""

    rank: int
    node: str
    cause: SubstrateCause
    text: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLost:
    """The cluster that the attempt ran on is not there any more."""

    expected_id: str
    found_id: str | None
    """Id of the cluster that answers now; absent when none does."""
    silent_s: float
    at_ms: int


class LaunchStage(StrEnum):
    """Where starting a rank failed."""

    PLACE = "place"
    """The cluster did not grant the resources."""
    PLAN = "plan"
    """The run's inputs could not be read."""
    CODE = "code"
    INPUTS = "inputs"
    RESUME = "resume"
    EXECUTE = "execute"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchProblem:
    """A rank's program, or all of them, never ran."""

    stage: LaunchStage
    message: str
    at_ms: int
    rank: int | None = None
    node: str | None = None
    reason: TerminationReason | None = None
    """Reason that whoever failed already named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopOrdered:
    """Our own intent, acted on while ranks still ran."""

    reason: TerminationReason
    why: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSilent:
    """No terminal record came from this rank before the settle window closed."""

    rank: int
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckRank:
    """Where one rank stood when nothing moved any more."""

    rank: int
    node: str
    last_step: int
    silent_s: float
    """Since it last showed progress."""
    frames: tuple[Frame, ...] = ()
    """Of the main thread, innermost last; empty where they could not be had."""
    stacks_source: str = "none"
    stacks_digest: str | None = None
    """Blob with the stacks of all threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """No rank that ran showed progress for longer than it may."""

    ranks: tuple[StuckRank, ...]
    limit_s: float
    stepped: bool
    """The attempt had finished a step before."""
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLeaving:
    """The cluster announced that it takes a node away."""

    node: str
    cause: SubstrateCause
    text: str
    at_ms: int
    ranks: tuple[int, ...] = ()


Observation: TypeAlias = (
    RankExit | RankLost | ClusterLost | LaunchProblem | StopOrdered | RankSilent | Hang | NodeLeaving
)
