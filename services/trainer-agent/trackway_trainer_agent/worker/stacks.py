"""Where a trainer hangs: its Python stacks, or where its threads wait in the kernel."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from trackway_trainer_agent.worker.records import StackDump

LIMIT_S = 3.0
"""``faulthandler`` answers in milliseconds, also when all threads hang in C."""
POLL_S = 0.02
KEPT_BYTES = 256 * 1024


def python_stacks(file: Path, ask: Callable[[], None]) -> str:
    """Ask the trainer to dump and read what it wrote; empty when it does not answer in time."""
    before = _size(file)
    ask()
    deadline_s = time.monotonic() + LIMIT_S
    seen = before
    while time.monotonic() < deadline_s:
        time.sleep(POLL_S)  # A signal handler can only write a file: nothing to wait on.
        size = _size(file)
        if size > before and size == seen:
            break
        seen = size
    with file.open("rb") as dump:
        dump.seek(before)
        return dump.read(KEPT_BYTES).decode("utf-8", "backslashreplace")


def answers_stacks(file: Path, pid: int, *, proc: Path = Path("/proc")) -> bool:
    """Tell whether this process, still running the same program, wrote down that it answers the signal."""
    try:
        written = file.with_name(f"{file.name}.ready").read_text()
        return written == f"{pid} {(proc / str(pid) / 'exe').readlink()}"
    except OSError:
        return False


def kernel_stacks(pid: int, *, proc: Path = Path("/proc")) -> StackDump:
    """One line for each thread: name, state and the kernel function that it waits in."""
    lines = []
    for thread in sorted((proc / str(pid) / "task").glob("[0-9]*")):
        name, state, waits_in = (_first_line(thread / part) for part in ("comm", "stat", "wchan"))
        lines.append(f"thread {thread.name} {name}: state {state.rpartition(')')[2][1:2]}, waits in {waits_in or '?'}")
    return StackDump(source="kernel" if lines else "none", text="\n".join(lines))


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _first_line(file: Path) -> str:
    try:
        return file.read_text().partition("\n")[0]
    except OSError:
        return ""  # The thread ended, or this kernel does not tell.
