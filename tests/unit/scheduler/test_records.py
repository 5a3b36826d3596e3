"""What the scheduler's indexes hold of the facts that were read back."""

from __future__ import annotations

from unittest.mock import sentinel

import pytest
from trackway_common.acceptance import Accepted
from trackway_common.commit import Commit
from trackway_common.events import DatasetRegistered
from trackway_common.fact_reader import Judged
from trackway_common.testing.run_facts import RunFacts
from trackway_scheduler.domain.datasets import Snapshots
from trackway_scheduler.shell.records import Records

from tests.unit.scheduler.builders import NOW


def registered(project: str, digest: str) -> DatasetRegistered:
    return DatasetRegistered(name="digits", manifest_digest=digest, project=project, registered_at=NOW)


def indexed(commits: list[Commit]) -> dict[str, Snapshots]:
    records = Records(sentinel.owner, sentinel.require_active)
    for commit in commits:
        records.take(Judged(record=sentinel.record, commit=commit, verdict=Accepted()))
    return {project: datasets["digits"] for project, datasets in records.datasets.items()}


@pytest.mark.parametrize("streams", [("datasets/demo/digits", "datasets/prod/digits"), ("datasets/digits",) * 2])
def test_a_dataset_belongs_to_the_project_that_its_fact_names(streams: tuple[str, str]) -> None:
    """Also where the stream's name holds no project, as the first builds wrote it."""
    demo, prod = registered("demo", "sha256:1"), registered("prod", "sha256:2")
    commits = RunFacts().commit(streams[0], demo).commit(streams[1], prod).commits
    assert indexed(commits) == {"demo": (demo,), "prod": (prod,)}


def test_a_snapshot_that_is_registered_in_a_stream_of_each_form_is_one() -> None:
    first, second = registered("demo", "sha256:1"), registered("demo", "sha256:2")
    commits = RunFacts().commit("datasets/digits", first, second).commit("datasets/demo/digits", first).commits
    assert indexed(commits) == {"demo": (second, first)}
