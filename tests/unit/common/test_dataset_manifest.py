"""Manifests are read strictly, and files only as the manifest knows them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from trackway_common.dataset_manifest import dataset_files, parse_manifest
from trackway_common.errors import CommandRejected, Unavailable


def manifest(root: Path, *paths: str) -> bytes:
    files = [
        {"path": path, "bytes": 3, "sha256": hashlib.sha256(b"abc").hexdigest(), "split": "train"} for path in paths
    ]
    return json.dumps({"name": "d", "root": str(root), "files": files, "splits": {"train": "sha256:x"}}).encode()


def test_file_is_read_as_the_manifest_knows_it(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"abc")
    (file,) = dataset_files(parse_manifest(manifest(tmp_path, "a.txt")), "train")
    assert file.path == "a.txt"
    assert file.read_bytes() == b"abc"


@pytest.mark.parametrize(("content", "words"), [(b"abd", "another content"), (b"ab", "2 bytes, not 3"), (None, "read")])
def test_changed_file_is_refused_when_read(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / "a.txt").write_bytes(content)
    (file,) = dataset_files(parse_manifest(manifest(tmp_path, "a.txt")))
    with pytest.raises(CommandRejected, match=words) as refused:
        file.read_bytes()
    assert refused.value.reason == "DATA_CORRUPT"


def test_storage_that_fails_says_nothing_about_the_file() -> None:
    # Address 0 of a process is never mapped: reading it answers EIO, as a bad disk does.
    (file,) = dataset_files(parse_manifest(manifest(Path("/proc/self"), "mem")))
    with pytest.raises(Unavailable, match="Input/output error"):
        file.read_bytes()


def test_unknown_split_names_the_ones_there_are(tmp_path: Path) -> None:
    with pytest.raises(CommandRejected, match="it has train"):
        dataset_files(parse_manifest(manifest(tmp_path, "a")), "test")


@pytest.mark.parametrize("path", ["../a", "/etc/passwd", "a/../../b"])
def test_path_that_leaves_the_root_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(CommandRejected, match="leaves"):
        parse_manifest(manifest(tmp_path, path))


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b'{"name":"d","root":"/","files":[{}],"splits":{}}'])
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(CommandRejected, match="no dataset manifest"):
        parse_manifest(data)
