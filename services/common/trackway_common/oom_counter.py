"""How many processes the kernel killed for memory in a process's cgroup (v1 and v2)."""

from __future__ import annotations

from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")


def oom_kills(pid: int, *, root: Path = CGROUP_ROOT, proc: Path = Path("/proc")) -> int | None:
    """The counter now; ``None`` where it can't be read. Only a difference between two reads says something."""
    counter = oom_counter(pid, root=root, proc=proc)
    return None if counter is None else oom_kills_of(counter)


def oom_counter(pid: int, *, root: Path = CGROUP_ROOT, proc: Path = Path("/proc")) -> Path | None:
    """The file that counts kills in the process's memory cgroup; ``None`` where there is none that can be read."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        counter = _counter_file(line, root)
        if counter is not None and oom_kills_of(counter) is not None:
            return counter
    return None


def oom_kills_of(counter: Path) -> int | None:
    """What such a file counts now; ``None`` once its cgroup was removed."""
    try:
        words = [line.split() for line in counter.read_text().splitlines()]
    except OSError:
        return None
    return next((int(count) for name, count in words if name == "oom_kill"), None)


def _counter_file(line: str, root: Path) -> Path | None:
    _, controllers, path = line.split(":", 2)
    if controllers == "":
        return root / path.lstrip("/") / "memory.events"
    if "memory" in controllers.split(","):
        return root / "memory" / path.lstrip("/") / "memory.oom_control"
    return None
