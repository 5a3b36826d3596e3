"""Datasets: what a name means in a project, and where else there is one of that name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from trackway_common.errors import CommandRejected, FieldViolation, NotFound
from trackway_common.events import DatasetRegistered

Snapshots: TypeAlias = tuple[DatasetRegistered, ...]
"""Of one dataset, newest last."""
Datasets: TypeAlias = Mapping[str, Mapping[str, Snapshots]]
"""By project and name; none is without a snapshot."""

ANY_PROJECT = "-"
_DIGEST_PREFIX = "sha256:"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotName:
    """A dataset's project and name, and as much of a snapshot's digest as was written."""

    project: str
    """``-``: whichever has one of that name."""
    dataset: str
    digest: str


def dataset_name(project: str, name: str) -> str:
    """Resource name of a dataset."""
    return f"projects/{project}/datasets/{name}"


def snapshot_name(snapshot: DatasetRegistered) -> str:
    """Resource name of a snapshot."""
    return f"{dataset_name(snapshot.project, snapshot.name)}@{snapshot.manifest_digest}"


def parse_snapshot_name(name: str) -> SnapshotName:
    """Read ``projects/{project}/datasets/{name}[@{digest}]`` or, of any project, ``{name}[@{digest}]``."""
    match name.split("/"):
        case ["projects", project, "datasets", last] if project:
            pass
        case [last]:
            project = ANY_PROJECT
        case _:
            last = ""
    dataset, _, digest = last.partition("@")
    if not dataset:
        shown = dataset_name("PROJECT", "NAME")
        raise _invalid("name", f"{name!r} names no dataset; write {shown}, or NAME, each with @DIGEST or without")
    if digest and not digest.startswith(_DIGEST_PREFIX):
        digest = f"{_DIGEST_PREFIX}{digest}"
    return SnapshotName(project=project, dataset=dataset, digest=digest)


def find_snapshot(wanted: SnapshotName, known: Datasets) -> DatasetRegistered:
    """Return the snapshot that a name means; the newest where it names no digest.

    Raises:
        CommandRejected: it means several.
        NotFound: it means none.
    """
    snapshots = _find_dataset(wanted, known)
    found = beginning_with(wanted.digest, snapshots)
    if not found:
        raise NotFound(f"dataset {wanted.dataset!r} has no snapshot {wanted.digest}")
    if len(found) > 1:
        raise _invalid("name", f"{len(found)} snapshots of {wanted.dataset!r} begin with {wanted.digest}")
    return found[0]


def beginning_with(digest: str, snapshots: Snapshots) -> Snapshots:
    """The snapshots whose digest begins so; of an empty one, the newest."""
    if not digest:
        return snapshots[-1:]
    return tuple(snapshot for snapshot in snapshots if snapshot.manifest_digest.startswith(digest))


def elsewhere(name: str, known: Datasets) -> str:
    """``; project a has one of that name`` where one has, else empty."""
    projects = _projects_with(name, known)
    if not projects:
        return ""
    listed = ", ".join(projects)
    return f"; project {listed} has one of that name" if len(projects) == 1 else f"; projects {listed} have one"


def _find_dataset(wanted: SnapshotName, known: Datasets) -> Snapshots:
    projects = _projects_with(wanted.dataset, known)
    if wanted.project != ANY_PROJECT:
        if wanted.project in projects:
            return known[wanted.project][wanted.dataset]
        place = f" in project {wanted.project!r}{elsewhere(wanted.dataset, known)}"
        raise NotFound(f"there is no dataset {wanted.dataset!r}{place}; `trackway dataset list` shows those there are")
    if not projects:
        raise NotFound(f"there is no dataset {wanted.dataset!r}; `trackway dataset list` shows those there are")
    if len(projects) > 1:
        names = " or ".join(dataset_name(project, wanted.dataset) for project in projects)
        raise _invalid("name", f"{len(projects)} projects have a dataset {wanted.dataset!r}; write {names}")
    return known[projects[0]][wanted.dataset]


def _projects_with(name: str, known: Datasets) -> tuple[str, ...]:
    return tuple(sorted(project for project, datasets in known.items() if name in datasets))


def _invalid(field: str, description: str) -> CommandRejected:
    return CommandRejected(description, violations=(FieldViolation(field=field, description=description),))
