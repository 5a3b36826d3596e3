"""The classes behind the first of `compute: [a, b]`: where a run goes on when the memory before was not enough."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trackway_common.errors import FieldViolation
from trackway_common.events import ComputeRef, PoolObserved, RunSpec
from trackway_common.fields import nearest

from trackway_scheduler.domain.catalogue import Catalogue, capacity_of, compute_ref, max_ranks


def alternatives(spec: RunSpec, catalogue: Catalogue) -> tuple[ComputeRef, ...]:
    """Each as it is pinned; all of them are in the catalogue."""
    found = (catalogue.find(one.compute_class) for one in spec.compute_alternatives)
    return tuple(compute_ref(compute) for compute in found if compute is not None)


def violations_of_alternatives(
    spec: RunSpec, catalogue: Catalogue, pools: Mapping[str, PoolObserved]
) -> Iterator[FieldViolation]:
    """What is wrong with each. A pool that was never heard from is waited for once the run gets there."""
    least = spec.topology.min_world_size or spec.topology.world_size
    for i, one in enumerate(spec.compute_alternatives, 1):
        compute = catalogue.find(one.compute_class)
        if compute is None:
            names = [known.name for known in catalogue.classes]
            description = f"{one.compute_class!r} is no compute class{nearest(one.compute_class, names)}"
            yield FieldViolation(field=f"compute[{i}]", description=description)
            continue
        pool = pools.get(compute.pool)
        most = compute.max_ranks if pool is None else max_ranks(compute, capacity_of(pool))
        if least > most:
            description = f"{compute.name} on pool {compute.pool} has room for {most} ranks, the run asks for {least}"
            yield FieldViolation(field=f"compute[{i}]", description=description)
