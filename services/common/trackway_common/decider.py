"""A decider: the three pure functions that make an aggregate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from trackway_common.events import Fact

S = TypeVar("S")
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Decider(Generic[S, C]):
    """How one kind of stream begins, decides and changes."""

    initial: Callable[[str], S]
    """State of a stream without facts, from the stream's name."""
    decide: Callable[[S, C], tuple[Fact, ...]]
    """Facts that a command makes happen; () when it was carried out already. Raises CommandRejected."""
    evolve: Callable[[S, Fact], S]
    """State after a fact. Never raises, never judges: the fact happened."""


def fold(decider: Decider[S, C], stream: str, facts: Iterable[Fact]) -> S:
    """Return the state of a stream after its facts."""
    state = decider.initial(stream)
    for fact in facts:
        state = decider.evolve(state, fact)
    return state
