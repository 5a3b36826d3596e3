"""What a run's own state and the outside make due now.

Level-triggered: the answer hangs on what is known, not on which message came last. So a scheduler that starts
again at any point arrives at the same commands, and their ids, derived from the causing commit, make them happen
once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from trackway_common.events import (
    EvaluationCompleted,
    EvaluationExhausted,
    GateVerdict,
    RunPhase,
    TerminationReason,
    Verdict,
)

from trackway_scheduler.domain.commands import (
    AttemptEnd,
    RecordAttemptEnded,
    RecordEvaluationCompleted,
    RecordEvaluationExhausted,
    RunCommand,
)
from trackway_scheduler.domain.evaluations import EvaluationOutcome
from trackway_scheduler.domain.ladder import Room
from trackway_scheduler.domain.outside import (
    Cause,
    Outside,
    SeenEnd,
    SeenOutcome,
    is_older_than,
    last_committed,
    unsettled,
)
from trackway_scheduler.domain.state import RunState

CAPTURE_DEADLINE_S = 120.0
"""How long a finished training waits for its last captures before an older checkpoint is evaluated."""
_FINISHED = frozenset({TerminationReason.COMPLETED, TerminationReason.EARLY_STOPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Time, chance and room, looked up by the caller."""

    at: datetime
    jitter: float
    rooms: Mapping[str, Room] = field(default_factory=lambda: MappingProxyType({}))
    """What each pool has, as it was last seen."""

    def room(self, run: RunState) -> Room:
        """Of the pool that the run is placed on."""
        return self.rooms.get(run.placed.pool, Room()) if run.placed else Room()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaction:
    """A command that is due, and the commit that made it so."""

    command: RunCommand
    cause: Cause
    round: int = 1
    """Of an evaluation: the same outcome may count again after a release."""

    @property
    def command_id(self) -> str:
        """The same for every scheduler that reacts to the same commit."""
        again = f"/{self.round}" if self.round > 1 else ""
        return f"{self.cause.commit_id}/{type(self.command).__name__}{again}"


def react(run: RunState, outside: Outside, moment: Moment) -> Reaction | None:
    """Return the command that is due for a run, if any."""
    match run.phase:
        case RunPhase.RUNNING:
            return _after_attempt(run, outside, moment)
        case RunPhase.EVALUATING:
            return _after_evaluation(run, outside, moment)
        case _:
            return None


def _after_attempt(run: RunState, outside: Outside, moment: Moment) -> Reaction | None:
    seen = outside.ends.get(run.attempt)
    if seen is None or _waits_for_captures(run, seen, outside, moment):
        return None
    end = AttemptEnd(
        attempt=run.attempt,
        reason=seen.fact.reason,
        cause=seen.fact.cause,
        last_committed=last_committed(outside, seen.fact.last_committed, run.last_committed),
        jitter=moment.jitter,
        at=moment.at,
        blamed_node=seen.fact.blamed_node,
        room=moment.room(run),
    )
    return Reaction(command=RecordAttemptEnded(end=end), cause=seen.cause)


def _waits_for_captures(run: RunState, seen: SeenEnd, outside: Outside, moment: Moment) -> bool:
    """A finished training's last capture may still be on its way to disk: it is the one to evaluate."""
    if run.cancel is not None or seen.fact.reason not in _FINISHED:
        return False
    if is_older_than(seen.fact.ended_at, moment.at, CAPTURE_DEADLINE_S):
        return False
    return bool(unsettled(outside, seen.fact.captures_in_flight))


def _after_evaluation(run: RunState, outside: Outside, moment: Moment) -> Reaction | None:
    if run.evaluation is None:
        return None
    seen = outside.outcomes.get(run.evaluation.evaluation_id)
    if seen is None or _was_for_an_earlier_order(run, seen):
        return None
    return Reaction(command=_outcome(seen.fact, moment.at), cause=seen.cause, round=run.evaluation_round)


def _was_for_an_earlier_order(run: RunState, seen: SeenOutcome) -> bool:
    """An exhausted evaluation that was released is tried again; a completed one keeps its verdict."""
    return isinstance(seen.fact, EvaluationExhausted) and seen.round < run.evaluation_round


def _outcome(fact: EvaluationCompleted | EvaluationExhausted, at: datetime) -> EvaluationOutcome:
    match fact:
        case EvaluationCompleted():
            gates = tuple(_gate(gate) for gate in fact.gates if gate.blocking and gate.verdict is not Verdict.PASSED)
            return RecordEvaluationCompleted(
                evaluation_id=fact.evaluation_id, verdict=fact.verdict, failed_gates=gates, at=at
            )
        case EvaluationExhausted():
            return RecordEvaluationExhausted(evaluation_id=fact.evaluation_id, message=fact.message, at=at)


def _gate(gate: GateVerdict) -> str:
    return f"{gate.task} {gate.metric} is {gate.value:.6g}, the gate asks {gate.op} {gate.threshold:g}"
