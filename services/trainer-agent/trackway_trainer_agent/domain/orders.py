"""What the scheduler wants of this agent: a fold of the run facts that concern it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from trackway_common.events import (
    AttemptPlaced,
    AttemptWrittenOff,
    CancelRequested,
    Fact,
    NextMove,
    RetryDecided,
    RunCancelled,
    RunSpec,
    RunSubmitted,
    TerminationReason,
)

SOON_S = 40.0
"""A gang is kept over a backoff up to this: over a longer one its resources serve others better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopOrder:
    """The attempt is to end."""

    reason: TerminationReason
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrders:
    """What one run asks of agents."""

    run_id: str
    spec: RunSpec | None = None
    submitted_at: datetime | None = None
    placed: Mapping[int, AttemptPlaced] = field(default_factory=lambda: MappingProxyType({}))
    """By attempt."""
    cancelled: StopOrder | None = None
    """Holds for every attempt of the run."""
    written_off: Mapping[int, StopOrder] = field(default_factory=lambda: MappingProxyType({}))
    """By attempt."""
    decided: Mapping[int, RetryDecided] = field(default_factory=lambda: MappingProxyType({}))
    """By the attempt that had ended."""

    def next_comes_soon(self, attempt: int, agent_id: str) -> bool:
        """Another attempt may still be placed with this agent before long, as far as was told."""
        if self.stop_order(attempt) is not None:
            return False
        placed, decided = self.placed.get(attempt + 1), self.decided.get(attempt)
        if placed is not None:
            return placed.agent_id == agent_id
        return decided is None or (decided.move is NextMove.RETRY and decided.backoff_seconds <= SOON_S)

    def stop_order(self, attempt: int) -> StopOrder | None:
        """Why the attempt is to end, if it is."""
        return self.written_off.get(attempt) or self.cancelled


def initial(run_id: str) -> RunOrders:
    """A run of which nothing is known."""
    return RunOrders(run_id=run_id)


def evolve(orders: RunOrders, fact: Fact) -> RunOrders:
    """Orders after a fact; facts that are none of an agent's business change nothing."""
    match fact:
        case RunSubmitted():
            return replace(orders, spec=fact.spec, submitted_at=fact.submitted_at)
        case AttemptPlaced():
            return replace(orders, placed=MappingProxyType({**orders.placed, fact.attempt: fact}))
        case CancelRequested():
            who = f" by {fact.actor}" if fact.actor else ""
            why = f"the run was cancelled{who}" + (f": {fact.reason}" if fact.reason else "")
            return replace(orders, cancelled=StopOrder(reason=TerminationReason.CANCELLED_BY_USER, why=why))
        case RunCancelled():
            why = f"the run was cancelled: {fact.reason}" if fact.reason else "the run was cancelled"
            order = orders.cancelled or StopOrder(reason=TerminationReason.CANCELLED_BY_USER, why=why)
            return replace(orders, cancelled=order)
        case RetryDecided():
            return replace(orders, decided=MappingProxyType({**orders.decided, fact.attempt: fact}))
        case AttemptWrittenOff():
            order = StopOrder(reason=fact.reason, why="the scheduler wrote this attempt off")
            return replace(orders, written_off=MappingProxyType({**orders.written_off, fact.attempt: order}))
        case _:
            return orders
