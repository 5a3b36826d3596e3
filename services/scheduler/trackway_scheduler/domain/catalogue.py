"""Compute classes: what a rank gets, on which pool, at which price."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trackway_common.events import ComputeOffer, ComputeRef, PoolObserved, Price

CPU = "cpu"
"""Accelerator kind of classes on which a rank slot counts as one accelerator, but the pool has no device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeClass:
    """One class of the catalogue."""

    name: str
    pool: str
    accelerator_kind: str
    accelerators_per_rank: int
    """Devices of the pool; 0 on CPU classes."""
    cpus_per_rank: float
    memory_bytes_per_rank: int
    max_ranks: int
    """Ranks of one run at most, however large the pool is."""
    preemptible: bool
    price: Price


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All classes that runs may ask for."""

    classes: tuple[ComputeClass, ...] = ()

    def find(self, name: str) -> ComputeClass | None:
        """The class of that name."""
        return next((compute for compute in self.classes if compute.name == name), None)

    def of_pool(self, pool: str) -> tuple[ComputeClass, ...]:
        """The classes that a pool serves."""
        return tuple(compute for compute in self.classes if compute.pool == pool)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Amounts of what ranks are given."""

    cpus: float
    accelerators: int
    memory_bytes: int

    def minus(self, other: Capacity) -> Capacity:
        """What is left; may be negative where a pool shrank."""
        return Capacity(
            cpus=self.cpus - other.cpus,
            accelerators=self.accelerators - other.accelerators,
            memory_bytes=self.memory_bytes - other.memory_bytes,
        )

    def plus(self, other: Capacity) -> Capacity:
        """Both together."""
        return Capacity(
            cpus=self.cpus + other.cpus,
            accelerators=self.accelerators + other.accelerators,
            memory_bytes=self.memory_bytes + other.memory_bytes,
        )

    def times(self, count: int) -> Capacity:
        """The amounts of several ranks."""
        return Capacity(
            cpus=self.cpus * count, accelerators=self.accelerators * count, memory_bytes=self.memory_bytes * count
        )

    def holds(self, need: Capacity) -> bool:
        """Tell whether all of the need is there."""
        # CPUs are sums of fractions: three times 0.1 must fit into 0.3.
        enough_cpus = need.cpus <= self.cpus + 1e-9
        return enough_cpus and need.accelerators <= self.accelerators and need.memory_bytes <= self.memory_bytes

    def fits(self, need: Capacity) -> int:
        """How many times the need is there."""
        counts = [
            math.floor((self.cpus + 1e-9) / need.cpus) if need.cpus > 0 else None,
            self.accelerators // need.accelerators if need.accelerators > 0 else None,
            self.memory_bytes // need.memory_bytes if need.memory_bytes > 0 else None,
        ]
        return max(0, min((count for count in counts if count is not None), default=0))


NOTHING = Capacity(cpus=0.0, accelerators=0, memory_bytes=0)


def need_of(compute: ComputeClass | ComputeRef) -> Capacity:
    """What one rank takes from the pool."""
    return Capacity(
        cpus=compute.cpus_per_rank,
        accelerators=compute.accelerators_per_rank,
        memory_bytes=compute.memory_bytes_per_rank,
    )


def capacity_of(pool: PoolObserved) -> Capacity:
    """All that a pool has."""
    return Capacity(cpus=pool.cpus, accelerators=pool.accelerators, memory_bytes=pool.memory_bytes)


def max_ranks(compute: ComputeClass, capacity: Capacity) -> int:
    """Ranks of a class that the empty pool can hold for one run."""
    return min(compute.max_ranks, capacity.fits(need_of(compute)))


def offers(catalogue: Catalogue, pool: str, capacity: Capacity) -> tuple[ComputeOffer, ...]:
    """What a pool of that capacity offers."""
    return tuple(
        ComputeOffer(
            compute_class=compute.name,
            accelerator_kind=compute.accelerator_kind,
            max_ranks=max_ranks(compute, capacity),
            price=compute.price,
        )
        for compute in catalogue.of_pool(pool)
    )


def compute_ref(compute: ComputeClass) -> ComputeRef:
    """The class as it is pinned into a run."""
    return ComputeRef(
        compute_class=compute.name,
        pool=compute.pool,
        accelerator_kind=compute.accelerator_kind,
        accelerators_per_rank=compute.accelerators_per_rank,
        cpus_per_rank=compute.cpus_per_rank,
        memory_bytes_per_rank=compute.memory_bytes_per_rank,
        preemptible=compute.preemptible,
        price=compute.price,
    )
