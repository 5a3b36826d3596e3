"""What a submission records of a git work tree."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from trackway.client.git_state import GitState, git_state

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def _git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    _git(tmp_path, "init", "-q")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("x = 1\n")
    (tmp_path / ".gitignore").write_text("*.log\n")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def test_a_clean_tree_is_its_commit(tree: Path) -> None:
    expected = GitState(commit=_git(tree, "rev-parse", "HEAD"))
    assert git_state(tree / "code") == expected
    (tree / "code" / "run.log").write_text("ignored")
    (tree / "elsewhere.txt").write_text("not in the code folder")
    assert git_state(tree / "code") == expected


def test_changes_have_a_digest_of_their_own(tree: Path) -> None:
    (tree / "code" / "train.py").write_text("x = 2\n")
    changed = git_state(tree / "code")
    assert changed.dirty_diff_digest.startswith("sha256:")
    _git(tree, "add", ".")
    assert git_state(tree / "code") == changed
    (tree / "code" / "new.py").write_text("y = 1\n")
    untracked = git_state(tree / "code")
    (tree / "code" / "new.py").write_text("y = 2\n")
    assert len({changed, untracked, git_state(tree / "code")}) == 3


def test_no_work_tree_no_commit_no_git_are_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tree: Path) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tree))
    (tree / ".git").rename(tree / "gone")
    assert git_state(tree / "code") == GitState()
    _git(tree, "init", "-q")
    assert git_state(tree / "code") == GitState()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tree / "code") == GitState()
