"""An attempt as its stream tells it: PLACED → STARTING → RUNNING → STOPPING → ENDED."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from trackway_common.events import (
    AttemptEnded,
    AttemptReclassified,
    AttemptRunning,
    AttemptStarted,
    AttemptStarting,
    AttemptStopping,
    CheckpointAbandoned,
    CheckpointRef,
    CheckpointStarted,
    EnvironmentObserved,
    Fact,
    RankStarted,
    ResumeTargetChosen,
)


class Phase(StrEnum):
    """Where the attempt stands."""

    PLACED = "PLACED"
    """The scheduler's word only: the stream has no fact."""
    STARTING = "STARTING"
    """Fence, resume target, actors, processes; until the first step."""
    RUNNING = "RUNNING"
    STOPPING = "STOPPING"
    """We told the ranks to stop, and why."""
    ENDED = "ENDED"


class SavePhase(StrEnum):
    """Where one checkpoint of the attempt stands, as far as attempt facts say."""

    STARTED = "STARTED"
    ABANDONED = "ABANDONED"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptState:
    """Fold of one attempt's stream."""

    stream: str
    phase: Phase = Phase.PLACED
    run_id: str = ""
    attempt: int = 0
    epoch: int = 0
    agent_id: str = ""
    starting_at: datetime | None = None
    resume_chosen: bool = False
    resume: CheckpointRef | None = None
    cluster_id: str = ""
    ranks: tuple[RankStarted, ...] = ()
    started_at: datetime | None = None
    first_step: int | None = None
    environments: frozenset[int] = frozenset()
    """Ranks that reported theirs."""
    saves: Mapping[str, SavePhase] = field(default_factory=lambda: MappingProxyType({}))
    """By nonce."""
    stopping_why: str = ""
    ended: AttemptEnded | None = None
    reclassified: AttemptReclassified | None = None
    """The newest verdict of a later classifier."""


def initial(stream: str) -> AttemptState:
    """State before the first fact."""
    return AttemptState(stream=stream)


def evolve(state: AttemptState, fact: Fact) -> AttemptState:
    """State after a fact; facts of other streams change nothing."""
    match fact:
        case AttemptStarting():
            return _starting(state, fact)
        case ResumeTargetChosen():
            return replace(state, resume_chosen=True, resume=fact.checkpoint)
        case AttemptStarted():
            return replace(state, cluster_id=fact.cluster_id, ranks=fact.ranks, started_at=fact.started_at)
        case EnvironmentObserved():
            return replace(state, environments=state.environments | {fact.rank})
        case AttemptRunning():
            running = Phase.RUNNING if state.phase is Phase.STARTING else state.phase
            return replace(state, phase=running, first_step=fact.first_step)
        case CheckpointStarted():
            return _with_save(state, fact.nonce, SavePhase.STARTED)
        case CheckpointAbandoned():
            return _with_save(state, fact.nonce, SavePhase.ABANDONED)
        case AttemptStopping():
            return replace(state, phase=Phase.STOPPING, stopping_why=fact.why)
        case AttemptEnded():
            return replace(state, phase=Phase.ENDED, ended=fact)
        case AttemptReclassified():
            return replace(state, reclassified=fact)
        case _:
            return state


def _starting(state: AttemptState, fact: AttemptStarting) -> AttemptState:
    return replace(
        state,
        phase=Phase.STARTING,
        run_id=fact.run_id,
        attempt=fact.attempt,
        epoch=fact.epoch,
        agent_id=fact.agent_id,
        starting_at=fact.starting_at,
    )


def _with_save(state: AttemptState, nonce: str, phase: SavePhase) -> AttemptState:
    return replace(state, saves=MappingProxyType({**state.saves, nonce: phase}))
