"""Which dataset manifests may be registered."""

from __future__ import annotations

import json

import pytest
from trackway_common.canonical import digest
from trackway_common.errors import CommandRejected
from trackway_common.events import DatasetRegistered
from trackway_scheduler.domain.commands import RegisterDataset, RegisterPack
from trackway_scheduler.domain.manifests import check_manifest

from tests.unit.scheduler.builders import NOW, Given, later

SHA = "a" * 64
BODY = {
    "name": "digits",
    "root": "/data/digits",
    "files": [
        {"path": "train/a.npy", "bytes": 10, "sha256": SHA, "split": "train"},
        {"path": "test/b.npy", "bytes": 5, "sha256": f"sha256:{SHA}", "split": "test"},
    ],
    "splits": {"train": f"sha256:{SHA}", "test": f"sha256:{SHA}"},
}


def changed(**fields) -> bytes:
    return json.dumps(BODY | fields).encode()


def with_file(**fields) -> bytes:
    return changed(files=[BODY["files"][0] | fields, BODY["files"][1]])


def test_a_manifest_is_brought_into_canonical_form():
    manifest = check_manifest(json.dumps(BODY, indent=4).encode())
    assert (manifest.name, manifest.files, manifest.size_bytes) == ("digits", 2, 15)
    assert manifest.splits == ("test", "train")
    assert manifest.digest == digest(BODY)
    assert json.loads(manifest.canonical) == BODY


@pytest.mark.parametrize(
    ("data", "field"),
    [
        (b"no json", "manifest"),
        (b"[1]", "manifest"),
        (changed(name="a b"), "manifest.name"),
        (changed(root="data"), "manifest.root"),
        (changed(files=[]), "manifest.files"),
        (changed(fiels=[]), "manifest.fiels"),
        (with_file(path="../x"), "manifest.files[0]"),
        (with_file(path="/x"), "manifest.files[0]"),
        (with_file(path="test/b.npy"), "manifest.files[1]"),
        (with_file(split="valid"), "manifest.files[0]"),
        (with_file(sha256="xyz"), "manifest.files[0]"),
        (with_file(bytes=-1), "manifest.files[0].bytes"),
        (with_file(bytes=2**60), "manifest"),
    ],
)
def test_a_mistake_is_named(data, field):
    with pytest.raises(CommandRejected) as refused:
        check_manifest(data)
    assert field in [violation.field for violation in refused.value.violations]


def test_a_snapshot_is_registered_once():
    command = RegisterDataset(manifest_digest="sha256:1", files=2, size_bytes=15, splits=("test",), at=NOW)
    given = Given(stream="datasets/demo/digits").when(command)
    given.then(
        DatasetRegistered(
            name="digits", manifest_digest="sha256:1", project="demo", files=2, size_bytes=15, splits=("test",),
            registered_at=NOW,
        )
    )  # fmt: skip
    assert Given(*given.made, stream="datasets/demo/digits").when(command).made == ()


def test_a_pack_that_was_sent_before_becomes_the_newest_again():
    stream = "packs/tiny"
    first = Given(stream=stream).when(RegisterPack(digest="sha256:1", at=NOW))
    assert Given(*first.made, stream=stream).when(RegisterPack(digest="sha256:1", at=later(1))).made == ()
    second = Given(*first.made, stream=stream).when(RegisterPack(digest="sha256:2", at=NOW))
    third = Given(*first.made, *second.made, stream=stream).when(RegisterPack(digest="sha256:1", at=NOW))
    assert [fact.digest for fact in third.made] == ["sha256:1"]
