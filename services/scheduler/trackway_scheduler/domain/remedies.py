"""What the attempt after a failed one does differently, whatever its budget says."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trackway_common.attempt_shape import declared_shape
from trackway_common.events import AttemptShape, Change, RunSpec, TerminationReason
from trackway_common.reasons import policy_of

from trackway_scheduler.domain.commands import AttemptEnd
from trackway_scheduler.domain.exclusions import drop_oldest, exclude
from trackway_scheduler.domain.ladder import LADDERS, Barred, Rung, climb
from trackway_scheduler.domain.state import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """The next attempt's shape, and how it differs from the last one's."""

    shape: AttemptShape
    changes: tuple[Change, ...] = ()
    missing: str = ""
    """Where a change is needed and none is possible: which declaration would allow one."""


def base_shape(state: RunState, spec: RunSpec) -> AttemptShape:
    """What a retry starts from: the last shape, and again the whole gang."""
    return replace(state.shape or declared_shape(spec), world_size=spec.topology.world_size)


def find_remedy(state: RunState, spec: RunSpec, end: AttemptEnd) -> Remedy:
    """Say what changes after this end; nothing, for most reasons."""
    shape, reason = base_shape(state, spec), policy_of(end.reason).reason
    if _was_not_granted(reason, end):
        return _remedy(drop_oldest(shape))
    if policy_of(reason).budget_with_change == 0 and reason not in LADDERS:
        return _remedy(exclude(shape, reason, end.blamed_node, state.decisions, end.room))
    found = climb(reason, shape, spec, end.room)
    if isinstance(found, Rung):
        return _remedy(found)
    return Remedy(shape=shape, missing=_missing(reason, found))


def _was_not_granted(reason: TerminationReason, end: AttemptEnd) -> bool:
    """The cluster had no room; a launch that failed on no node in particular never had one."""
    nowhere = reason is TerminationReason.LAUNCH_FAILED and end.blamed_node is None
    return reason is TerminationReason.CAPACITY_TIMEOUT or nowhere


def _remedy(rung: Rung) -> Remedy:
    return Remedy(shape=rung.shape, changes=rung.changes)


def _missing(reason: TerminationReason, barred: tuple[Barred, ...]) -> str:
    said = "; ".join(one.why for one in barred)
    if not said:
        return f"{reason} needs {policy_of(reason).must_change}, which only a person can bring about."
    return f"{reason} is not retried in the same shape, and no change is possible: {said}."
