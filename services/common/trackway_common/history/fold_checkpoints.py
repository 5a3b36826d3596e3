"""The commit log's mirror: which checkpoints there are, and what became of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from trackway_common.events import (
    CheckpointCommitted,
    CheckpointDeleted,
    CheckpointHeld,
    CheckpointPhase,
    CheckpointQuarantined,
    CheckpointSuperseded,
    CheckpointTombstoned,
    Fact,
    FenceRaised,
    HoldReleased,
)
from trackway_common.history.model import CheckpointHistory, RunHistory


def evolve_checkpoints(history: RunHistory, fact: Fact) -> RunHistory:
    """Apply one fact of stream ``checkpoints/{run}``."""
    match fact:
        case FenceRaised():
            return replace(history, fences=(*history.fences, fact.epoch))
        case CheckpointCommitted():
            return replace(history, checkpoints=(*history.checkpoints, CheckpointHistory(committed=fact)))
        case CheckpointHeld() | HoldReleased() | CheckpointSuperseded():
            return _with(history, fact.commit_slot, lambda checkpoint: _evolve(checkpoint, fact))
        case CheckpointQuarantined() | CheckpointTombstoned() | CheckpointDeleted():
            return _with(history, fact.commit_slot, lambda checkpoint: _evolve(checkpoint, fact))
    return history


def _evolve(checkpoint: CheckpointHistory, fact: Fact) -> CheckpointHistory:
    match fact:
        case CheckpointHeld():
            return replace(checkpoint, holders=(*_without(checkpoint, fact.consumer), fact.consumer))
        case HoldReleased():
            return replace(checkpoint, holders=_without(checkpoint, fact.consumer))
        case CheckpointSuperseded():
            return replace(checkpoint, phase=CheckpointPhase.SUPERSEDED, superseded_by=fact.by_policy)
        case CheckpointQuarantined():
            return replace(checkpoint, phase=CheckpointPhase.QUARANTINED, quarantined_why=fact.why)
        case CheckpointTombstoned():
            return replace(checkpoint, tombstoned=True)
        case CheckpointDeleted():
            return replace(checkpoint, phase=CheckpointPhase.DELETED, freed_bytes=fact.freed_bytes)
    return checkpoint


def _with(history: RunHistory, slot: int, change: Callable[[CheckpointHistory], CheckpointHistory]) -> RunHistory:
    changed = (change(c) if c.slot == slot else c for c in history.checkpoints)
    return replace(history, checkpoints=tuple(changed))


def _without(checkpoint: CheckpointHistory, consumer: str) -> tuple[str, ...]:
    return tuple(holder for holder in checkpoint.holders if holder != consumer)
