"""Where the time went that a run's attempts held accelerators: productive, or lost to a cause.

Computed from facts whenever it is asked for, never stored: what a step was worth depends on later commits and on where
the next attempt went on. The parts of an attempt are those of its receipt (``receipt/seconds.py``) times its
accelerators; what an attempt that still runs did since its last commit is ``uncommitted``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from trackway_common.errors import NotFound
from trackway_common.history.model import AttemptHistory, RunHistory
from trackway_common.history.receipt.build import run_name, seconds_until
from trackway_common.history.receipt.course_columns import accelerators_of
from trackway_common.history.receipt.outcome_columns import ended_at, outcome_columns
from trackway_common.history.receipt.seconds import SecondsColumns

UNCOMMITTED = "uncommitted"
PARTS: Mapping[str, str] = MappingProxyType(
    {
        "productive": "productive_seconds",
        "startup": "startup_seconds",
        "restore": "restore_seconds",
        "data_wait": "data_wait_seconds",
        "stall": "stall_seconds",
        "lost": "lost_seconds",
        "hang": "hang_seconds",
        "idle": "idle_seconds",
        "unattributed": "unattributed_seconds",
    }
)
"""Parts, and the columns of ``training_attempts`` that hold them per accelerator."""
NO_LOSS = frozenset({"productive", UNCOMMITTED})
HINTS: Mapping[str, str] = MappingProxyType(
    {
        "startup": "Starts cost most: shorten imports and set-up before the first step, or have fewer of them.",
        "restore": "Reading the checkpoint back costs most: keep less state in it, or put the store nearer.",
        "data_wait": "Training waits for data: more loader workers, prefetching, or data nearer to the ranks.",
        "stall": "Saving blocks training: save less often, less state, or let a busy save be skipped.",
        "lost": "Most was rolled back: save more often than attempts end, and see why they end.",
        "hang": "Most was spent standing still before the stall was noticed: lower the limits of the spec.",
        "idle": "Accelerators were held while nothing ran: let programs end soon after their last step.",
        "unattributed": "The ranks' clocks and the log's don't agree: compare the clocks of the nodes.",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodputPart:
    """One use of the time."""

    name: str
    seconds: float
    """Accelerator-seconds."""
    share: float
    """Of the whole, 0..1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptGoodput:
    """One attempt's allocated time."""

    attempt: int
    state: str
    reason: str
    accelerators: int
    wall_seconds: float
    """From placement to the end, or until now."""
    seconds: float
    """Accelerator-seconds: what the parts add up to."""
    queue_seconds: float
    """Before the placement; held nothing, so it is no part."""
    measured: bool
    """A session told where its time went."""
    parts: tuple[GoodputPart, ...]
    largest_loss: str
    """Part that took the most, productive and uncommitted aside; empty when nothing was lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """A run's allocated time."""

    name: str
    run_id: str
    as_of: datetime
    attempts: tuple[AttemptGoodput, ...]
    seconds: float
    queue_seconds: float
    parts: tuple[GoodputPart, ...]
    largest_loss: str
    hint: str
    """What usually helps against the largest loss."""


def goodput_of(history: RunHistory, *, as_of: datetime, only: int | None = None) -> Goodput:
    """Split the time of every attempt that was placed.

    Args:
        history: the run's; its submission must be among its facts.
        as_of: until when attempts that still run are counted.
        only: of this attempt alone.
    Raises:
        NotFound: there is no such attempt, or the run's submission is missing.
    """
    spec = history.spec
    if spec is None:
        raise NotFound(f"run {history.run_id} was never queued, so it has no attempts")
    if only is not None and history.attempt(only) is None:
        raise NotFound(f"run {history.run_id} has no attempt {only}")
    wanted = [a for a in history.attempts if a.placed and (only is None or a.attempt == only)]
    attempts = tuple(_attempt(history, attempt, as_of) for attempt in wanted)
    parts = _summed(attempts)
    largest = _largest(parts)
    return Goodput(
        name=run_name(spec.project, history.run_id),
        run_id=history.run_id,
        as_of=as_of,
        attempts=attempts,
        seconds=sum(attempt.seconds for attempt in attempts),
        queue_seconds=sum(attempt.queue_seconds for attempt in attempts),
        parts=parts,
        largest_loss=largest,
        hint=HINTS.get(largest, ""),
    )


def _attempt(history: RunHistory, attempt: AttemptHistory, as_of: datetime) -> AttemptGoodput:
    end, outcome = ended_at(attempt), outcome_columns(attempt)
    split = seconds_until(history, attempt, end or as_of)
    accelerators = attempt.ended.accelerators if attempt.ended else 0
    if attempt.placed and not accelerators:
        accelerators = accelerators_of(attempt.placed.ranks)
    parts = _shares({name: s * accelerators for name, s in _seconds_of(split, live=end is None).items()})
    return AttemptGoodput(
        attempt=attempt.attempt,
        state=outcome.state,
        reason=outcome.termination_reason,
        accelerators=accelerators,
        wall_seconds=split.wall_seconds,
        seconds=split.wall_seconds * accelerators,
        queue_seconds=attempt.placed.queue_seconds if attempt.placed else 0.0,
        measured=_is_measured(attempt),
        parts=parts,
        largest_loss=_largest(parts),
    )


def _seconds_of(split: SecondsColumns, *, live: bool) -> dict[str, float]:
    seconds = {name: float(getattr(split, column)) for name, column in PARTS.items()}
    # A later commit may still keep what is not kept yet.
    return seconds | ({"lost": 0.0, UNCOMMITTED: seconds["lost"]} if live else {UNCOMMITTED: 0.0})


def _is_measured(attempt: AttemptHistory) -> bool:
    clocks = [capture.phases for capture in attempt.captures]
    return any([*clocks, attempt.ended.phases if attempt.ended else None])


def _summed(attempts: Sequence[AttemptGoodput]) -> tuple[GoodputPart, ...]:
    totals = dict.fromkeys((*PARTS, UNCOMMITTED), 0.0)
    for attempt in attempts:
        for part in attempt.parts:
            totals[part.name] += part.seconds
    return _shares(totals)


def _shares(seconds: Mapping[str, float]) -> tuple[GoodputPart, ...]:
    whole = sum(seconds.values())
    return tuple(GoodputPart(name=name, seconds=s, share=s / whole if whole else 0.0) for name, s in seconds.items())


def _largest(parts: Iterable[GoodputPart]) -> str:
    losses = [part for part in parts if part.name not in NO_LOSS and part.seconds > 0]
    return max(losses, key=lambda part: part.seconds).name if losses else ""
