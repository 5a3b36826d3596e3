"""A queued run gets its resources: the fact that says so, and how the attempt differs from the one before."""

from __future__ import annotations

from dataclasses import replace

from trackway_common.attempt_shape import unless_declared
from trackway_common.events import AttemptPlaced, Change, RunPhase

from trackway_scheduler.domain.commands import PlaceAttempt
from trackway_scheduler.domain.remedies import base_shape
from trackway_scheduler.domain.state import RunState

WORLD_SIZE = "topology.world_size"


def place(state: RunState, command: PlaceAttempt) -> tuple[AttemptPlaced, ...]:
    """The placement; () when the run doesn't wait for this attempt, or not yet."""
    queued, spec = state.queued, state.spec
    if state.phase is not RunPhase.QUEUED or queued is None or queued.attempt != command.attempt or spec is None:
        return ()
    if command.at < queued.not_before:
        return ()
    shape = replace(base_shape(state, spec), world_size=len(command.ranks))
    placed = AttemptPlaced(
        attempt=command.attempt,
        epoch=command.attempt,
        pool=command.pool,
        agent_id=command.agent_id,
        ranks=command.ranks,
        changes=(*state.changes, *_world_size(state, command), *_agent(state, command)),
        placed_at=command.at,
        captures_in_flight=command.captures_in_flight,
        queue_seconds=(command.at - queued.queued_at).total_seconds(),
        shape=unless_declared(shape, spec),
    )
    return (placed,)


def _world_size(state: RunState, command: PlaceAttempt) -> tuple[Change, ...]:
    """Against the attempt before; the first one is compared with what was asked for."""
    assert state.spec is not None
    before = len(state.placed.ranks) if state.placed is not None else state.spec.topology.world_size
    after = len(command.ranks)
    if before == after:
        return ()
    why = command.shortfall or "the whole gang was to be had again"
    return (Change(field=WORLD_SIZE, before=str(before), after=str(after), why=why),)


def _agent(state: RunState, command: PlaceAttempt) -> tuple[Change, ...]:
    before = state.placed
    if before is None or before.agent_id == command.agent_id:
        return ()
    why = "the queue placed it where capacity was free"
    return (Change(field="agent_id", before=before.agent_id, after=command.agent_id, why=why),)
