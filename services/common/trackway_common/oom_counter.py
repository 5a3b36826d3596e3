"""How many processes the kernel killed for memory in a process's cgroup (v1 and v2)."""

from __future__ import annotations

from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")


def oom_kills(pid: int, *, root: Path = CGROUP_ROOT, proc: Path = Path("/proc")) -> int | None:
    """The counter now; ``None`` where it can't be read. Only a difference between two reads says something."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        counted = _counted(_counter_file(line, root))
        if counted is not None:
            return counted
    return None


def _counter_file(line: str, root: Path) -> Path | None:
    _, controllers, path = line.split(":", 2)
    if controllers == "":
        return root / path.lstrip("/") / "memory.events"
    if "memory" in controllers.split(","):
        return root / "memory" / path.lstrip("/") / "memory.oom_control"
    return None


def _counted(file: Path | None) -> int | None:
    if file is None:
        return None
    try:
        words = [line.split() for line in file.read_text().splitlines()]
    except OSError:
        return None
    return next((int(count) for name, count in words if name == "oom_kill"), None)
