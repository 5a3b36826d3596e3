"""What a run's spec says, as columns; the same in ``training_runs`` and ``training_attempts``."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.codec import fact_json
from trackway_common.events import RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PurposeColumns:
    """Whose run it is and what it is for."""

    project: str
    model_family: str
    owner: str
    criticality: str
    experiment: str
    hypothesis: str
    labels: str
    trigger_kind: str
    trigger_ref: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InputColumns:
    """Everything that was pinned when the run was submitted."""

    spec_digest: str
    config_digest: str
    config_json: str
    seed: int
    seed_drawn: bool
    deterministic: bool
    entrypoint_kind: str
    entrypoint: tuple[str, ...]
    dataset_names: tuple[str, ...]
    dataset_digests: tuple[str, ...]
    dataset_weights: tuple[float, ...]
    code_requested: str
    code_digest: str
    git_commit: str
    dirty_diff_digest: str
    runtime_kind: str
    environment_digest: str
    """Of the image, the lock or the pool's environment, by ``runtime_kind``."""
    python_version: str
    evaluation_pack: str
    evaluation_pack_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeColumns:
    """On what, and in which shape."""

    compute_class: str
    accelerator_kind: str
    preemptible: bool
    price: float
    """Per accelerator and hour."""
    currency: str
    price_since: str
    world_size: int
    strategy: str
    precision: str
    keep_last: int
    in_flight: str
    max_attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecColumns:
    """All columns of a spec."""

    purpose: PurposeColumns
    inputs: InputColumns
    shape: ShapeColumns


def spec_columns(spec: RunSpec) -> SpecColumns:
    """Return a spec's columns."""
    return SpecColumns(purpose=_purpose(spec), inputs=_inputs(spec), shape=_shape(spec))


def _purpose(spec: RunSpec) -> PurposeColumns:
    return PurposeColumns(
        project=spec.project,
        model_family=spec.model_family,
        owner=spec.owner,
        criticality=spec.criticality,
        experiment=spec.experiment,
        hypothesis=spec.hypothesis,
        labels=fact_json(spec.labels),
        trigger_kind=spec.trigger.kind,
        trigger_ref=spec.trigger.ref,
    )


def _inputs(spec: RunSpec) -> InputColumns:
    return InputColumns(
        spec_digest=spec.spec_digest,
        config_digest=spec.config_digest,
        config_json=spec.hyperparameters_json,
        seed=spec.seed,
        seed_drawn=spec.seed_drawn,
        deterministic=spec.deterministic,
        entrypoint_kind=spec.entrypoint.kind,
        entrypoint=spec.entrypoint.argv,
        dataset_names=tuple(dataset.name for dataset in spec.datasets),
        dataset_digests=tuple(dataset.manifest_digest for dataset in spec.datasets),
        dataset_weights=tuple(dataset.weight for dataset in spec.datasets),
        code_requested=spec.code.requested,
        code_digest=spec.code.archive_digest,
        git_commit=spec.code.git_commit or "",
        dirty_diff_digest=spec.code.dirty_diff_digest or "",
        runtime_kind=spec.runtime.kind,
        environment_digest=spec.runtime.environment_digest,
        python_version=spec.runtime.python_version,
        evaluation_pack=spec.evaluation_pack.name,
        evaluation_pack_digest=spec.evaluation_pack.digest,
    )


def _shape(spec: RunSpec) -> ShapeColumns:
    compute, topology = spec.compute, spec.topology
    return ShapeColumns(
        compute_class=compute.compute_class,
        accelerator_kind=compute.accelerator_kind,
        preemptible=compute.preemptible,
        price=compute.price.amount,
        currency=compute.price.currency,
        price_since=compute.price.since,
        world_size=topology.world_size,
        strategy=topology.strategy,
        precision=topology.precision,
        keep_last=topology.checkpoint.keep_last,
        in_flight=topology.checkpoint.in_flight,
        max_attempts=spec.max_attempts,
    )
