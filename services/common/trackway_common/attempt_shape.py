"""What one attempt runs with: the run's spec, but for what a retry or a placement changed of it.

The scheduler decides shapes, the agent runs them, receipts and explanations print them.
"""

from __future__ import annotations

from dataclasses import replace

from trackway_common.events import AttemptPlaced, AttemptShape, RunSpec


def declared_shape(spec: RunSpec) -> AttemptShape:
    """The shape that the spec itself asks for."""
    return AttemptShape(
        hyperparameters_json=spec.hyperparameters_json,
        config_digest=spec.config_digest,
        compute=spec.compute,
        world_size=spec.topology.world_size,
    )


def unless_declared(shape: AttemptShape, spec: RunSpec) -> AttemptShape | None:
    """The shape as facts carry it: None where it is exactly the spec's."""
    return None if shape == declared_shape(spec) else shape


def spec_with(spec: RunSpec, shape: AttemptShape | None) -> RunSpec:
    """The spec as an attempt of that shape runs it."""
    if shape is None:
        return spec
    return replace(
        spec,
        hyperparameters_json=shape.hyperparameters_json,
        config_digest=shape.config_digest,
        compute=shape.compute,
        topology=replace(spec.topology, world_size=shape.world_size),
    )


def spec_of_attempt(spec: RunSpec, placed: AttemptPlaced | None) -> RunSpec:
    """The spec as a placed attempt runs it; as submitted before it is placed."""
    return spec if placed is None else spec_with(spec, placed.shape)
