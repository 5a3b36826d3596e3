"""Datasets are told apart by their projects, and a wrong one is told where there is one of that name."""

from __future__ import annotations

import pytest
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.events import DatasetRegistered
from trackway_scheduler.domain.datasets import Datasets, find_snapshot, parse_snapshot_name, snapshot_name

from tests.unit.scheduler.builders import DIGEST, NOW

OTHER = "sha256:" + "3" * 64


def snapshots(project: str, name: str, *digests: str) -> tuple[DatasetRegistered, ...]:
    return tuple(DatasetRegistered(name=name, manifest_digest=d, project=project, registered_at=NOW) for d in digests)


KNOWN: Datasets = {
    "demo": {"digits": snapshots("demo", "digits", OTHER, DIGEST), "words": snapshots("demo", "words", DIGEST)},
    "prod": {"digits": snapshots("prod", "digits", OTHER)},
}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("projects/demo/datasets/digits", f"projects/demo/datasets/digits@{DIGEST}"),
        ("projects/prod/datasets/digits", f"projects/prod/datasets/digits@{OTHER}"),
        ("projects/demo/datasets/digits@3333333", f"projects/demo/datasets/digits@{OTHER}"),
        (f"projects/demo/datasets/digits@{OTHER}", f"projects/demo/datasets/digits@{OTHER}"),
        ("projects/-/datasets/words", f"projects/demo/datasets/words@{DIGEST}"),
        ("words", f"projects/demo/datasets/words@{DIGEST}"),
    ],
)
def test_a_snapshot_is_found_in_its_project_as_the_newest_or_by_digest(name: str, found: str) -> None:
    assert snapshot_name(find_snapshot(parse_snapshot_name(name), KNOWN)) == found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("projects/prod/datasets/words", "no dataset 'words' in project 'prod'; project demo has one of that name"),
        ("projects/test/datasets/digits", "no dataset 'digits' in project 'test'; projects demo, prod have one"),
        ("projects/demo/datasets/letters", "no dataset 'letters' in project 'demo'; `trackway dataset list`"),
        ("letters", "no dataset 'letters'; `trackway dataset list`"),
        ("projects/prod/datasets/digits@4444444", "has no snapshot sha256:4444444"),
    ],
)
def test_what_is_not_there_is_told_with_the_projects_that_have_one(name: str, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        find_snapshot(parse_snapshot_name(name), KNOWN)


def test_a_name_of_several_projects_lists_what_it_could_mean() -> None:
    with pytest.raises(CommandRejected, match="write projects/demo/datasets/digits or projects/prod/datasets/digits"):
        find_snapshot(parse_snapshot_name("digits"), KNOWN)


def test_a_digest_of_several_snapshots_is_refused() -> None:
    known: Datasets = {"demo": {"digits": snapshots("demo", "digits", "sha256:12", "sha256:13")}}
    with pytest.raises(CommandRejected, match="2 snapshots of 'digits' begin with sha256:1"):
        find_snapshot(parse_snapshot_name("digits@1"), known)


@pytest.mark.parametrize(
    "name", ["", "@12", "projects/demo/datasets/@12", "projects/demo/runs/x", "demo/digits", "projects//datasets/x"]
)
def test_what_names_no_dataset_is_refused(name: str) -> None:
    with pytest.raises(CommandRejected, match="write projects/PROJECT/datasets/NAME"):
        parse_snapshot_name(name)
