"""What Ray's record of a dead actor means. Reads text, so that it needs no Ray."""

from __future__ import annotations

from trackway_trainer_agent.domain.observations import SubstrateCause as Cause

_MEANINGS: tuple[tuple[str, Cause], ...] = (
    # First match wins: a node's death says more than that of the actors on it. Names are those of Ray's
    # protobuf messages (ActorDeathCause, NodeDeathInfo, WorkerExitType) and of its messages to people.
    ("AUTOSCALER_DRAIN_PREEMPTED", Cause.PREEMPTED),
    ("was preempted", Cause.PREEMPTED),
    ("AUTOSCALER_DRAIN_IDLE", Cause.DRAINED),
    ("EXPECTED_TERMINATION", Cause.NODE_DIED),
    ("NODE_DIED", Cause.NODE_DIED),
    ("its node has died", Cause.NODE_DIED),
    ("oom_context", Cause.OUT_OF_MEMORY),
    ("NODE_OUT_OF_MEMORY", Cause.OUT_OF_MEMORY),
    ("running low on memory", Cause.OUT_OF_MEMORY),
    ("RAY_KILL", Cause.KILLED_BY_US),
    ("INTENDED_USER_EXIT", Cause.KILLED_BY_US),
    ("killed by `ray.kill`", Cause.KILLED_BY_US),
)


def cause_of_death(said: str) -> Cause:
    """The cause that Ray's words give; unexplained when they give none."""
    return next((cause for words, cause in _MEANINGS if words in said), Cause.UNEXPLAINED)
