"""Datasets that a spec names: which snapshots of the run's own project are meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from trackway_common.errors import FieldViolation
from trackway_common.events import DatasetRef, RunSpec
from trackway_common.fields import nearest

from trackway_scheduler.domain.datasets import Datasets, Snapshots, beginning_with, elsewhere


def dataset_violations(spec: RunSpec, known: Datasets) -> Iterator[FieldViolation]:
    """Whatever doesn't mean exactly one snapshot."""
    # A project that is missing is a violation of its own.
    own = known.get(spec.project, {}) if spec.project else _of_all_projects(known)
    for i, ref in enumerate(spec.datasets):
        if ref.name not in own:
            description = _not_registered(ref.name, spec.project, own, known)
        elif (count := len(beginning_with(ref.manifest_digest, own[ref.name]))) != 1:
            description = _not_one(count, ref, own[ref.name])
        else:
            continue
        yield FieldViolation(field=f"datasets[{i}]", description=description)


def pinned_datasets(spec: RunSpec, known: Datasets) -> tuple[DatasetRef, ...]:
    """The spec's datasets with their whole digests; there are no violations."""
    return tuple(_pinned(ref, known[spec.project][ref.name]) for ref in spec.datasets)


def _of_all_projects(known: Datasets) -> Mapping[str, Snapshots]:
    return {name: snapshots for datasets in known.values() for name, snapshots in datasets.items()}


def _not_registered(name: str, project: str, own: Mapping[str, Snapshots], known: Datasets) -> str:
    where = f" in project {project!r}" if project else ""
    hint = elsewhere(name, known) or nearest(name, own)
    remedy = f"register it with `trackway dataset snapshot {name} PATH --project {project or 'PROJECT'}`"
    return f"no dataset {name!r} is registered{where}{hint}; {remedy}"


def _not_one(count: int, ref: DatasetRef, snapshots: Snapshots) -> str:
    what = "no snapshot has" if count == 0 else f"{count} snapshots have"
    newest = snapshots[-1].manifest_digest
    return f"{what} a digest that begins with {ref.manifest_digest}; the newest of {ref.name} is {newest}"


def _pinned(ref: DatasetRef, snapshots: Snapshots) -> DatasetRef:
    (snapshot,) = beginning_with(ref.manifest_digest, snapshots)
    return replace(ref, manifest_digest=snapshot.manifest_digest)
