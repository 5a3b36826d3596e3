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
    oom_kills: int | None = None
    """Kills that the memory cgroup counted meanwhile; absent where nobody counts."""
    stop_sent_at_ms: int | None = None
    """When this agent told it to stop; absent when it did not."""
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


Observation: TypeAlias = RankExit | RankLost | ClusterLost | LaunchProblem | StopOrdered | RankSilent
