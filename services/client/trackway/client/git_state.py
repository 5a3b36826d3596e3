"""Which commit a code folder is at, and how far it is from it. No git, no answer: the archive pins the code."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trackway.client.blobs import file_digest

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GitState:
    """Both empty outside of a git work tree."""

    commit: str = ""
    dirty_diff_digest: str = ""
    """Digest of the difference from the commit, untracked files included; empty when there is none."""


def git_state(folder: Path) -> GitState:
    """Return the state of the folder's part of its work tree."""
    try:
        commit = _git(folder, "rev-parse", "--verify", "HEAD").decode().strip()
        return GitState(commit=commit, dirty_diff_digest=_difference(folder))
    except (OSError, subprocess.SubprocessError):
        # Not installed, no work tree, no commit yet, or a tree of another user that git refuses to read.
        return GitState()


def _difference(folder: Path) -> str:
    tracked = _git(folder, "diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD", "--", ".")
    listed = _git(folder, "ls-files", "--others", "--exclude-standard", "-z", "--", ".")
    untracked = sorted(name for name in listed.split(b"\0") if name)
    if not tracked and not untracked:
        return ""
    seen = hashlib.sha256(tracked)
    for name in untracked:
        path = folder / name.decode(errors="surrogateescape")
        content = file_digest(path) if path.is_file() else "none"
        seen.update(b"\0" + name + b"\0" + content.encode())
    return f"sha256:{seen.hexdigest()}"


def _git(folder: Path, *arguments: str) -> bytes:
    # No locks and no fsmonitor hook: looking must not change or run anything in the user's tree.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, timeout=TIMEOUT_S).stdout
