"""One decider for the runs topic: it picks by the kind of stream."""

from __future__ import annotations

from dataclasses import replace

from trackway_common.decider import Decider
from trackway_common.errors import CommandRejected
from trackway_common.events import DatasetRegistered, EvaluationPackRegistered, Fact, PoolObserved

from trackway_scheduler.domain.commands import Command, ObservePool, RegisterDataset, RegisterPack, RunCommand
from trackway_scheduler.domain.decide import decide_run
from trackway_scheduler.domain.evolve import RunFact, evolve_run
from trackway_scheduler.domain.registry import observe_pool, register_dataset, register_pack
from trackway_scheduler.domain.state import DatasetState, PackState, PoolState, RunState, State, initial


def decide(state: State, command: Command) -> tuple[Fact, ...]:
    """Facts that a command makes happen on a stream."""
    match state, command:
        case DatasetState(), RegisterDataset():
            return register_dataset(state, command)
        case PackState(), RegisterPack():
            return register_pack(state, command)
        case PoolState(), ObservePool():
            return observe_pool(state, command)
        case _:
            if isinstance(state, RunState) and isinstance(command, RunCommand):
                return decide_run(state, command)
            raise CommandRejected(f"{type(command).__name__} can't be asked of a {type(state).__name__}")


def evolve(state: State, fact: Fact) -> State:
    """State of a stream after one more fact; facts that belong to other streams change nothing."""
    match state, fact:
        case RunState(), _:
            return evolve_run(state, fact) if isinstance(fact, RunFact) else state
        case DatasetState(), DatasetRegistered():
            return replace(state, snapshots=(*state.snapshots, fact))
        case PackState(), EvaluationPackRegistered():
            return replace(state, versions=(*state.versions, fact))
        case PoolState(), PoolObserved():
            return replace(state, observed=fact)
        case _:
            return state


SCHEDULER: Decider[State, Command] = Decider(initial=initial, decide=decide, evolve=evolve)
