"""Globs of .gitignore, against what git itself says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from trackway.client.ignore import glob_regex, is_ignored, parse_rule, read_rules

CASES = [
    "*.pyc", "build/", "/top.txt", "docs/*.txt", "**/cache", "a/**", "a/**/z", "!keep.pyc", "[ab].txt", "[!ab].txt",
    "# comment", "", "\\#hash", "\\!bang", "trailing ", "spaced\\ ", "x?z", "*", "!*/", "foo*bar", "/a/b", "a/b/",
    "[a-c]?", "**", "/**/b.txt", "!", "/", "*/b.txt", "[]a].txt", "***.txt",
]  # fmt: skip
PATHS = [
    "top.txt", "a.pyc", "keep.pyc", "build/x", "sub/build/y", "docs/r.txt", "docs/deep/r.txt", "cache/v", "q/cache/v",
    "a/b/c/z", "a/z", "a/b.txt", "b.txt", "c.txt", "#hash", "!bang", "trailing", "spaced ", "xyz", "foobar", "foo1bar",
    "b/top.txt", "].txt",
]  # fmt: skip


def _ours(rules_text: list[str], path: str) -> bool:
    rules = [rule for line in rules_text if (rule := parse_rule(line))]
    parts = path.split("/")
    folders = ["/".join(parts[:i]) for i in range(1, len(parts))]
    return any(is_ignored(rules, f, is_folder=True) for f in folders) or is_ignored(rules, path, is_folder=False)


@pytest.mark.skipif(shutil.which("git") is None, reason="git says what is right here, and it is not installed")
@pytest.mark.parametrize("rules", [*([case] for case in CASES), ["*.pyc", "!keep.pyc"], ["*", "!*/", "!*.txt"]])
def test_same_verdict_as_git(tmp_path: Path, rules: list[str]) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for path in PATHS:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("x")
    (tmp_path / ".gitignore").write_text("\n".join(rules) + "\n")
    command = ["git", "-C", str(tmp_path), "-c", "core.excludesFile=", "ls-files", "-oz", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")
    expected = {path for path in PATHS if path not in listed}
    assert {path for path in PATHS if _ours(rules, path)} == expected


def test_a_missing_ignore_file_has_no_rules(tmp_path: Path) -> None:
    assert read_rules(tmp_path / ".gitignore", "") == ()


def test_rules_of_a_folder_speak_of_what_is_below_it() -> None:
    rule = parse_rule("/x", base="sub/")
    assert rule is not None
    assert rule.matches("sub/x", is_folder=False)
    assert not rule.matches("x", is_folder=False)


def test_a_glob_without_a_slash_matches_at_any_depth() -> None:
    assert glob_regex("*.py").fullmatch("a/b/c.py")
    assert not glob_regex("a/*.py").fullmatch("a/b/c.py")
    assert glob_regex("a/**/*.py").fullmatch("a/b/c.py")
