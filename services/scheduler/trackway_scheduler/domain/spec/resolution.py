"""Pin what a run spec only names: datasets, code, pack, compute class and the pool's environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from trackway_common.errors import CommandRejected, FieldViolation, Unavailable
from trackway_common.evaluation_pack import Adapter, EvaluationPack, check_against, pack_digest
from trackway_common.events import ComputeRef, EvaluationPackRef, PoolObserved, RunSpec, RuntimeRef
from trackway_common.fields import nearest

from trackway_scheduler.domain.catalogue import Catalogue, ComputeClass, capacity_of, compute_ref, max_ranks
from trackway_scheduler.domain.datasets import Datasets
from trackway_scheduler.domain.spec.alternatives import alternatives, violations_of_alternatives
from trackway_scheduler.domain.spec.dataset_pins import dataset_violations, pinned_datasets
from trackway_scheduler.domain.spec.reading import Draft

SPEC_INVALID = "SPEC_INVALID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the scheduler knows at the moment of submission."""

    datasets: Datasets
    pools: Mapping[str, PoolObserved]
    """Pools that an agent was ever heard from."""
    catalogue: Catalogue
    pack: EvaluationPack | None
    """The one that the spec asks for, sent along or registered; None where there is none of that name."""
    pack_names: tuple[str, ...]
    code_is_stored: bool


def resolve(draft: Draft, surroundings: Surroundings) -> RunSpec:
    """Return the spec with every input pinned.

    Raises:
        CommandRejected: with every violation, those of reading included.
        Unavailable: nothing is wrong, but no agent has told what the pool has.
    """
    spec = draft.spec
    compute = surroundings.catalogue.find(spec.compute.compute_class)
    pool = surroundings.pools.get(compute.pool) if compute else None
    found = [*draft.violations, *_violations(spec, surroundings, compute, pool)]
    if found:
        raise refusal(found)
    assert compute is not None
    if pool is None or not pool.environment_digest:
        raise Unavailable(
            f"no agent of pool {compute.pool} was heard from yet, so its environment can't be pinned;"
            " start its agent (`trackway up` locally) and submit again"
        )
    spec = replace(spec, compute_alternatives=alternatives(spec, surroundings.catalogue))
    return _pinned(spec, surroundings, compute_ref(compute), pool)


def refusal(violations: list[FieldViolation]) -> CommandRejected:
    """The error that lists everything that is wrong with a submission."""
    shown = "; ".join(f"{one.field} {one.description}" for one in violations[:3])
    more = f" (and {len(violations) - 3} more)" if len(violations) > 3 else ""
    message = f"the run can't be accepted: {shown}{more}"
    return CommandRejected(message, reason=SPEC_INVALID, violations=tuple(violations))


def _violations(
    spec: RunSpec, surroundings: Surroundings, compute: ComputeClass | None, pool: PoolObserved | None
) -> Iterator[FieldViolation]:
    yield from _code(spec, surroundings)
    yield from dataset_violations(spec, surroundings.datasets)
    yield from _compute(spec, surroundings.catalogue, compute)
    yield from violations_of_alternatives(spec, surroundings.catalogue, surroundings.pools)
    if compute and pool:
        yield from _ranks(spec, compute, pool)
    yield from _pack(spec, surroundings)


def _code(spec: RunSpec, surroundings: Surroundings) -> Iterator[FieldViolation]:
    if not spec.code.archive_digest:
        description = "is required: the code that runs is the archived one; store it with BlobService first"
        yield FieldViolation(field="code_archive_digest", description=description)
    elif not surroundings.code_is_stored:
        description = f"{spec.code.archive_digest!r} is not a stored blob; store the archive with BlobService first"
        yield FieldViolation(field="code_archive_digest", description=description)


def _compute(spec: RunSpec, catalogue: Catalogue, compute: ComputeClass | None) -> Iterator[FieldViolation]:
    name = spec.compute.compute_class
    if compute is None and name:
        names = [known.name for known in catalogue.classes]
        description = f"{name!r} is no compute class{nearest(name, names)}; one of {', '.join(names) or 'none'}"
        yield FieldViolation(field=_compute_field(spec), description=description)


def _compute_field(spec: RunSpec) -> str:
    return "compute[0]" if spec.compute_alternatives else "compute"


def _ranks(spec: RunSpec, compute: ComputeClass, pool: PoolObserved) -> Iterator[FieldViolation]:
    most = max_ranks(compute, capacity_of(pool))
    asked = spec.topology.min_world_size or spec.topology.world_size
    if asked > most:
        description = f"asks for {asked} ranks, but {compute.name} on pool {pool.pool} has room for {most}"
        yield FieldViolation(field="topology.world_size", description=description)
    elif spec.topology.world_size > compute.max_ranks:
        whole = spec.topology.world_size
        description = f"asks for {whole} ranks, but {compute.name} gives one run {compute.max_ranks} at most"
        yield FieldViolation(field="topology.world_size.max", description=description)


def _pack(spec: RunSpec, surroundings: Surroundings) -> Iterator[FieldViolation]:
    name, pack = spec.evaluation_pack.requested, surroundings.pack
    if not name:
        return
    if pack is None:
        known = surroundings.pack_names
        listed = f"; registered: {', '.join(known)}" if known else "; none is registered"
        description = f"no evaluation pack {name!r} was sent along or is registered{nearest(name, known)}{listed}"
        yield FieldViolation(field="evaluation_pack", description=description)
        return
    if pack.name != name:
        description = f"asks for {name!r}, but the pack that was sent along is named {pack.name!r}"
        yield FieldViolation(field="evaluation_pack", description=description)
    if pack.evaluator.adapter is Adapter.BUILTIN and not spec.evaluation_model:
        description = f"is required: pack {name!r} is run by the builtin evaluator, which has to build the model"
        yield FieldViolation(field="evaluation.model", description=description)
    yield from check_against(pack, [ref.name for ref in spec.datasets])


def _pinned(spec: RunSpec, surroundings: Surroundings, compute: ComputeRef, pool: PoolObserved) -> RunSpec:
    pack = surroundings.pack if spec.evaluation_pack.requested else None
    return replace(
        spec,
        datasets=pinned_datasets(spec, surroundings.datasets),
        compute=compute,
        runtime=RuntimeRef(
            kind=spec.runtime.kind,
            environment_digest=pool.environment_digest,
            python_version=pool.python_version,
        ),
        evaluation_pack=EvaluationPackRef()
        if pack is None
        else EvaluationPackRef(name=pack.name, requested=spec.evaluation_pack.requested, digest=pack_digest(pack)),
    )
