"""What an attempt that ran out of memory, or diverged, does differently the next time: one step of a ladder.

A step moves only what the spec declares: the keys under `tunable`, the classes under `compute`. Micro-batch ×
accumulation, what the optimizer sees of a step, is never changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import TypeGuard

from trackway_common.canonical import Json, canonical_json, digest_bytes
from trackway_common.events import AttemptShape, Change, RunSpec, TerminationReason

from trackway_scheduler.domain.gang_sizes import smaller_gangs

MEMORY_FACTOR = 1.5
MOST = 1 << 40
"""Above it a number is no count of samples, passes or workers that anybody meant."""


class Step(StrEnum):
    """One way to change the shape, by the word that `retry.REASON.mutate` uses."""

    HALVE_MICRO_BATCH = "halve_micro_batch"
    CHECKPOINT_ACTIVATIONS = "checkpoint_activations"
    MORE_SHARDS = "more_shards"
    NEXT_COMPUTE = "next_compute"
    RAISE_MEMORY = "raise_memory"
    FEWER_LOADER_WORKERS = "fewer_loader_workers"
    HALVE_LEARNING_RATE = "halve_learning_rate"


LADDERS: Mapping[TerminationReason, tuple[Step, ...]] = MappingProxyType(
    {
        TerminationReason.DEVICE_OOM: (
            Step.HALVE_MICRO_BATCH,
            Step.CHECKPOINT_ACTIVATIONS,
            Step.MORE_SHARDS,
            Step.NEXT_COMPUTE,
        ),
        TerminationReason.HOST_OOM: (Step.RAISE_MEMORY, Step.FEWER_LOADER_WORKERS),
        TerminationReason.NUMERIC_DIVERGENCE: (Step.HALVE_LEARNING_RATE,),
    }
)
"""Steps that can help against a reason, in the order they are tried."""
ON_REQUEST = frozenset({TerminationReason.NUMERIC_DIVERGENCE})
"""Reasons whose steps are taken only where the spec's `mutate` names them: they change what is learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """What the run's pool has; zeros where nobody told."""

    memory_bytes: int = 0
    nodes: int = 0
    """That live."""
    largest_node_memory_bytes: int = 0
    """What one rank can have at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """A shape that can be tried next."""

    shape: AttemptShape
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Barred:
    """A step that can't be taken, and what would allow it."""

    step: Step
    why: str


def steps_of(spec: RunSpec, reason: TerminationReason) -> tuple[Step, ...]:
    """The steps that this run takes against a reason, in order."""
    override = next((one for one in spec.retry if one.reason is reason), None)
    if override is not None and override.mutate:
        named = set(LADDERS.get(reason, ()))
        return tuple(Step(word) for word in override.mutate if word in named)
    return () if reason in ON_REQUEST else LADDERS.get(reason, ())


def climb(reason: TerminationReason, shape: AttemptShape, spec: RunSpec, room: Room) -> Rung | tuple[Barred, ...]:
    """Take the first possible step; where none is, say of each what bars it."""
    barred = []
    for step in steps_of(spec, reason):
        taken = _STEPS[step](_Footing(shape, spec, room))
        if isinstance(taken, Rung):
            return taken
        barred.append(Barred(step=step, why=taken))
    return tuple(barred)


@dataclass(frozen=True, slots=True)
class _Footing:
    """Where a step starts."""

    shape: AttemptShape
    spec: RunSpec
    room: Room

    def key(self, role: str) -> str | None:
        """Hyperparameter that has a role, where the spec declares one."""
        return next((one.key for one in self.spec.tunable if one.role == role), None)

    def value(self, key: str) -> Json:
        """A hyperparameter as the attempt before had it."""
        return _hyperparameters(self.shape).get(key)


def _halve_micro_batch(footing: _Footing) -> Rung | str:
    micro, accumulation = footing.key("micro_batch"), footing.key("accumulation")
    if micro is None or accumulation is None:
        declared = {"micro_batch": micro, "accumulation": accumulation}
        missing = " and ".join(role for role, key in declared.items() if key is None)
        return f"declare {missing} under `tunable`, so that the micro-batch can be halved and the batch kept"
    size, passes = footing.value(micro), footing.value(accumulation)
    if not _is_whole(size, 1) or not _is_whole(passes, 1):
        return f"{micro} and {accumulation} must be whole numbers from 1"
    if size % 2:
        return f"{micro} is {size}, which has no whole half that keeps the batch"
    why = "half the samples in one pass, twice the passes: the same batch"
    return _with_values(footing.shape, {micro: size // 2, accumulation: passes * 2}, why)


def _checkpoint_activations(footing: _Footing) -> Rung | str:
    key = footing.key("activation_checkpointing")
    if key is None:
        return "declare activation_checkpointing under `tunable`, so that it can be switched on"
    if footing.value(key) is not False:
        return f"{key} is on already"
    return _with_values(footing.shape, {key: True}, "activations are computed again instead of kept")


def _more_shards(footing: _Footing) -> Rung | str:
    key = footing.key("shards")
    if key is None:
        return "declare shards under `tunable`, where the training code can spread its state over more ranks"
    shards, ranks = footing.value(key), _least_ranks(footing.spec)
    if not _is_whole(shards, 1):
        return f"{key} must be a whole number from 1"
    if shards * 2 > ranks:
        smaller = ", the smallest gang that it may get" if ranks < footing.spec.topology.world_size else ""
        return f"{key} is {shards}, and twice as many do not fit {ranks} ranks{smaller}"
    return _with_values(footing.shape, {key: shards * 2}, "the state is spread over twice as many ranks")


def _least_ranks(spec: RunSpec) -> int:
    """Ranks that the next attempt has at least: its shape is decided before its gang is placed."""
    whole = spec.topology.world_size
    return min((whole, *smaller_gangs(whole, spec.topology.min_world_size)))


def _next_compute(footing: _Footing) -> Rung | str:
    classes = (footing.spec.compute, *footing.spec.compute_alternatives)
    names = [compute.compute_class for compute in classes]
    now = footing.shape.compute.compute_class
    behind = classes[names.index(now) + 1 :] if now in names else ()
    if not behind:
        if len(classes) == 1:
            return "write `compute: [CLASS, LARGER]`, so that it can go on to a class with more memory"
        return f"{now} is the last of `compute`"
    change = Change(
        field="compute", before=now, after=behind[0].compute_class, why="the next class that `compute` lists"
    )
    return Rung(shape=replace(footing.shape, compute=behind[0]), changes=(change,))


def _raise_memory(footing: _Footing) -> Rung | str:
    """Within the pool, and within one node where the pool's agent told how large its largest one is.

    Not seen: how many ranks each node holds then. A gang that fits the sum and not the nodes waits for capacity.
    """
    compute, room = footing.shape.compute, footing.room
    before = compute.memory_bytes_per_rank
    if before <= 0:
        return f"class {compute.compute_class} grants no amount of memory; memory_gib_per_rank in the catalogue does"
    after, limit = int(before * MEMORY_FACTOR), room.memory_bytes // max(1, footing.spec.topology.world_size)
    if room.largest_node_memory_bytes:
        limit = min(limit, room.largest_node_memory_bytes)
    if after > limit:
        has = f"has room for {_gib(limit)} a rank" if room.memory_bytes else "did not tell its memory"
        return f"half as much again is {_gib(after)} a rank, and pool {compute.pool} {has}"
    change = Change(
        field="compute.memory_bytes_per_rank", before=str(before), after=str(after), why="half as much memory again"
    )
    return Rung(shape=replace(footing.shape, compute=replace(compute, memory_bytes_per_rank=after)), changes=(change,))


def _fewer_loader_workers(footing: _Footing) -> Rung | str:
    key = footing.key("loader_workers")
    if key is None:
        return "declare loader_workers under `tunable`, so that they can be halved"
    workers = footing.value(key)
    if not _is_whole(workers, 1):
        return f"{key} is {_text(workers)}, and no loader worker is left to do without"
    return _with_values(footing.shape, {key: workers // 2}, "half the loader workers, and their memory")


def _halve_learning_rate(footing: _Footing) -> Rung | str:
    key = footing.key("learning_rate")
    if key is None:
        return "declare learning_rate under `tunable`, so that it can be halved"
    rate = footing.value(key)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or rate / 2 in {rate, 0}:
        return f"{key} is {_text(rate)}, which can't be halved"
    return _with_values(footing.shape, {key: rate / 2}, "half the learning rate from the last checkpoint on")


_STEPS: Mapping[Step, Callable[[_Footing], Rung | str]] = MappingProxyType(
    {
        Step.HALVE_MICRO_BATCH: _halve_micro_batch,
        Step.CHECKPOINT_ACTIVATIONS: _checkpoint_activations,
        Step.MORE_SHARDS: _more_shards,
        Step.NEXT_COMPUTE: _next_compute,
        Step.RAISE_MEMORY: _raise_memory,
        Step.FEWER_LOADER_WORKERS: _fewer_loader_workers,
        Step.HALVE_LEARNING_RATE: _halve_learning_rate,
    }
)


def _hyperparameters(shape: AttemptShape) -> dict[str, Json]:
    values: dict[str, Json] = json.loads(shape.hyperparameters_json or "{}")
    return values


def _with_values(shape: AttemptShape, values: Mapping[str, Json], why: str) -> Rung:
    before = _hyperparameters(shape)
    changes = tuple(
        Change(field=f"hyperparameters.{key}", before=_text(before.get(key)), after=_text(value), why=why)
        for key, value in values.items()
    )
    config = canonical_json(before | dict(values))
    changed = replace(shape, hyperparameters_json=config.decode(), config_digest=digest_bytes(config))
    return Rung(shape=changed, changes=changes)


def _is_whole(value: Json, at_least: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and at_least <= value <= MOST


def _text(value: Json) -> str:
    return canonical_json(value).decode()


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.3g} GiB"
