"""Code is materialised once, verified at every use, and nothing in an archive escapes its folder."""

from __future__ import annotations

import io
import os
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from trackway_common.canonical import digest_bytes
from trackway_common.code_archive import extract, materialise
from trackway_common.errors import CommandRejected


def archive(*members: tuple[tarfile.TarInfo, bytes], compression: str = "gz") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=f"w:{compression}") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def plain(name: str, content: bytes = b"", mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.mode = mode
    return member, content


def special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = target
    return member, b""


CODE = archive(plain("train.py", b"pass\n"), plain("pkg/run.sh", b"#!/bin/sh\n", 0o755))


def test_files_arrive_with_content_and_executable_bit(tmp_path: Path) -> None:
    folder = materialise(digest_bytes(CODE), lambda: CODE, tmp_path)
    assert (folder / "train.py").read_bytes() == b"pass\n"
    assert os.access(folder / "pkg/run.sh", os.X_OK)
    assert not os.access(folder / "train.py", os.X_OK)


def test_second_use_fetches_nothing(tmp_path: Path) -> None:
    first = materialise("sha256:aa", lambda: CODE, tmp_path)
    assert materialise("sha256:aa", lambda: pytest.fail("fetched again"), tmp_path) == first


def test_ranks_that_come_at_once_share_one_folder(tmp_path: Path) -> None:
    fetched: list[int] = []

    def fetch() -> bytes:
        fetched.append(1)
        return CODE

    with ThreadPoolExecutor(8) as pool:
        folders = set(pool.map(lambda _: materialise("sha256:aa", fetch, tmp_path), range(8)))
    assert len(folders) == 1
    assert len(fetched) == 1


def test_folder_that_was_written_into_is_not_used_again_and_not_taken_away(tmp_path: Path) -> None:
    first = materialise("sha256:aa", lambda: CODE, tmp_path)
    (first / "train.py").write_text("changed")
    second = materialise("sha256:aa", lambda: CODE, tmp_path)
    assert (second / "train.py").read_bytes() == b"pass\n"
    assert (first / "train.py").read_text() == "changed"


def test_bytecode_caches_do_not_count_as_changes(tmp_path: Path) -> None:
    first = materialise("sha256:aa", lambda: CODE, tmp_path)
    (first / "__pycache__").mkdir()
    (first / "__pycache__" / "train.pyc").write_bytes(b"x")
    assert materialise("sha256:aa", lambda: CODE, tmp_path) == first


@pytest.mark.parametrize(
    "member",
    [
        plain("../outside", b"x"),
        plain("/etc/outside", b"x"),
        plain("a/../../outside", b"x"),
        special("link", tarfile.SYMTYPE, "/etc/passwd"),
        special("link", tarfile.LNKTYPE, "train.py"),
        special("pipe", tarfile.FIFOTYPE),
        special("disk", tarfile.BLKTYPE),
    ],
    ids=["parent", "absolute", "hidden parent", "symlink", "hard link", "fifo", "device"],
)
def test_members_that_are_no_plain_files_inside_are_refused_by_name(
    member: tuple[tarfile.TarInfo, bytes], tmp_path: Path
) -> None:
    with pytest.raises(CommandRejected, match=member[0].name.rpartition("/")[2]):
        extract(archive(plain("train.py"), member), tmp_path)


def test_member_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandRejected, match="twice"):
        extract(archive(plain("train.py", b"a"), plain("train.py", b"b")), tmp_path)


def test_what_is_no_tar_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(CommandRejected, match="can't be read"):
        materialise("sha256:aa", lambda: b"no tar", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["sha256-aa.lock"]
