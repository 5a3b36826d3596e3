"""Processes of a rank, found from its trainer: the launcher above it, and the actor that holds the launcher's pipe."""

from __future__ import annotations

from pathlib import Path

CONTROL_ARGUMENT = 4
"""Place of the control pipe's number in a launcher's command line."""


def launcher_of(trainer: int) -> int:
    """Process id of a trainer's launcher, its parent."""
    return parent_of(trainer)


def actor_of(trainer: int) -> int:
    """Process id of a trainer's actor: no ancestor, but the only other process with the launcher's control pipe."""
    launcher = launcher_of(trainer)
    control = Path(f"/proc/{launcher}/cmdline").read_bytes().split(b"\0")[CONTROL_ARGUMENT].decode()
    pipe = str(Path(f"/proc/{launcher}/fd/{control}").readlink())
    holders = {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and pipe in _open(entry)}
    (actor,) = holders - {launcher}
    return actor


def parent_of(pid: int) -> int:
    """Process id of a process's parent."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _open(process: Path) -> set[str]:
    try:
        return {_target(descriptor) for descriptor in (process / "fd").iterdir()}
    except OSError:
        return set()  # It ended, or belongs to another user.


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""  # Closed meanwhile.
