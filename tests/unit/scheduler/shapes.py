"""Runs whose shape may change, for the tests of what a retry does differently."""

from __future__ import annotations

import json

from trackway_common.attempt_shape import declared_shape
from trackway_common.canonical import canonical_json, digest_bytes
from trackway_common.events import AttemptShape, ComputeRef, Price, RunSpec, Tunable
from trackway_scheduler.domain.ladder import Room

from tests.unit.scheduler.builders import run_spec

GIB = 1 << 30
ROOM = Room(memory_bytes=16 * GIB, nodes=3)
KEYS = {
    "micro_batch": "batch",
    "accumulation": "passes",
    "activation_checkpointing": "recompute",
    "shards": "shards",
    "loader_workers": "workers",
    "learning_rate": "lr",
}


def compute(name: str = "small", memory_gib: float = 2.0) -> ComputeRef:
    return ComputeRef(
        compute_class=name,
        pool="local",
        cpus_per_rank=1.0,
        memory_bytes_per_rank=int(memory_gib * GIB),
        price=Price(),
    )


def tunable_spec(values: dict[str, object], *roles: str, classes: tuple[str, ...] = ("small",), **changes) -> RunSpec:
    """A spec with these hyperparameters, of which those with the named roles are tunable."""
    config = canonical_json(values)
    first, *others = (compute(name) for name in classes)
    return run_spec(
        hyperparameters_json=config.decode(),
        config_digest=digest_bytes(config),
        tunable=tuple(Tunable(role=role, key=KEYS[role]) for role in roles),
        compute=first,
        compute_alternatives=tuple(others),
        **changes,
    )


def values(shape: AttemptShape) -> dict[str, object]:
    return json.loads(shape.hyperparameters_json)


def shape(spec: RunSpec) -> AttemptShape:
    return declared_shape(spec)
