"""The code archive: same folder, same bytes; nothing that no run needs; no way out of the folder."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trackway.client import archive
from trackway.client.archive import write_archive
from trackway_common.errors import CommandRejected

NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="/\0", exclude_categories=("C",)), min_size=1, max_size=12
)
PATHS = st.tuples(NAMES, NAMES).map(lambda parts: f"d{parts[0]}/f{parts[1]}")
FILES = st.dictionaries(PATHS, st.tuples(st.binary(max_size=64), st.booleans()), min_size=1, max_size=8)

Files = dict[str, tuple[bytes, bool]]
"""Path → content, executable."""


def _write(folder: Path, files: Files, order: int = 1) -> None:
    for path, (content, executable) in sorted(files.items())[::order]:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
        (folder / path).chmod(0o700 if executable else 0o640)


def _packed(folder: Path) -> bytes:
    out = io.BytesIO()
    write_archive(folder, out)
    return out.getvalue()


def _names(folder: Path) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(_packed(folder))) as tar:
        return tar.getnames()


@settings(deadline=None, max_examples=30)
@given(files=FILES)
def test_the_same_files_give_the_same_bytes(tmp_path_factory: pytest.TempPathFactory, files: Files) -> None:
    one, other = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("other")
    _write(one, files)
    _write(other, files, order=-1)
    for path in files:
        os.utime(other / path, (1, 1))
        (other / path).chmod(0o755 if files[path][1] else 0o600)
    assert hashlib.sha256(_packed(one)).digest() == hashlib.sha256(_packed(other)).digest()
    with tarfile.open(fileobj=io.BytesIO(_packed(one))) as tar:
        members = {member.name: member for member in tar}
        assert list(members) == sorted(files, key=str.encode)
        for path, (content, executable) in files.items():
            taken = tar.extractfile(members[path])
            assert taken is not None
            assert taken.read() == content
            assert members[path].mode == (0o755 if executable else 0o644)
            assert (members[path].mtime, members[path].uid, members[path].uname) == (0, 0, "")


def test_ignored_files_and_caches_stay_out(tmp_path: Path) -> None:
    kept = {"train.py": (b"x", False), "pkg/keep.log": (b"k", False)}
    left = {".git/HEAD": (b"x", False), ".venv/bin/python": (b"x", True), "pkg/__pycache__/a.pyc": (b"x", False),
            "run.log": (b"x", False), "data/big.bin": (b"x", False), "pkg/local.txt": (b"x", False)}  # fmt: skip
    _write(tmp_path, kept | left)
    (tmp_path / ".gitignore").write_text("*.log\n/data/\n")
    (tmp_path / "pkg/.gitignore").write_text("!keep.log\n/local.txt\n")
    assert _names(tmp_path) == [".gitignore", "pkg/.gitignore", "pkg/keep.log", "train.py"]


def test_ignore_rules_of_the_work_tree_above_count(tmp_path: Path) -> None:
    _write(tmp_path, {".git/HEAD": (b"x", False), "code/a.py": (b"x", False), "code/out/b": (b"x", False)})
    (tmp_path / ".gitignore").write_text("/code/out/\n")
    assert _names(tmp_path / "code") == ["a.py"]


def test_links_inside_are_replaced_by_what_they_lead_to(tmp_path: Path) -> None:
    _write(tmp_path, {"lib/a.py": (b"content", False)})
    (tmp_path / "b.py").symlink_to("lib/a.py")
    (tmp_path / "copy").symlink_to("lib")
    assert _names(tmp_path) == ["b.py", "copy/a.py", "lib/a.py"]
    with tarfile.open(fileobj=io.BytesIO(_packed(tmp_path))) as tar:
        assert all(member.isreg() for member in tar)


@pytest.mark.parametrize(
    ("target", "says"), [("/etc/hostname", "leaves the code folder"), ("gone.py", "leads nowhere"), (".", "holds it")]
)
def test_links_that_leave_dangle_or_go_in_a_circle_are_refused(tmp_path: Path, target: str, says: str) -> None:
    _write(tmp_path, {"a.py": (b"x", False)})
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(CommandRejected, match=says) as refused:
        _packed(tmp_path)
    assert refused.value.violations[0].field == "code.path"
    (tmp_path / ".gitignore").write_text("link\n")
    assert "link" not in _names(tmp_path)


def test_a_folder_that_is_none_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandRejected, match="no folder"):
        _packed(tmp_path / "missing")
    with pytest.raises(CommandRejected, match="holds no files"):
        _packed(tmp_path)


def test_too_large_a_folder_is_refused_with_its_largest_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
    _write(tmp_path, {"a.py": (b"x", False), "weights.bin": (b"x" * (1 << 20), False)})
    with pytest.raises(CommandRejected, match=r"weights\.bin \(1\.0 MiB\).*\.gitignore"):
        _packed(tmp_path)
