"""Finds and ends what belongs to a stack, also after its supervisor was killed.

A process belongs to it when its environment says so, when it is in the session of a recorded child (Ray's agents
overwrite their environment with a new title), or when an ancestor belongs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import psutil
from trackway_common.errors import Unavailable

from trackway.local.state import ProcessMark

STACK_VARIABLE = "TRACKWAY_STACK_ID"
CHILD_VARIABLE = "TRACKWAY_STACK_CHILD"
KILL_DEADLINE_S = 10.0
POLL_S = 0.05
CLOCK_SLACK_S = 2.0
"""A start time is told from the boot time, which moves when the wall clock is set; pids don't come back that fast."""

Find = Callable[[], Sequence[psutil.Process]]


def mark_of(pid: int) -> ProcessMark | None:
    """Return the mark of a living process."""
    try:
        return ProcessMark(pid=pid, create_time=psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return None


def is_alive(mark: ProcessMark | None) -> bool:
    """Tell whether that very process still runs; a zombie does not."""
    if mark is None:
        return False
    try:
        process = psutil.Process(mark.pid)
        return _is_that(process, mark.create_time) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def stack_processes(
    stack_id: str, *, child: str | None = None, sessions: Iterable[ProcessMark] = ()
) -> tuple[psutil.Process, ...]:
    """Return the living processes of a stack, or of one of its children, without this one and its ancestors.

    Args:
        stack_id: the stack's id.
        child: only what this child started.
        sessions: children as recorded; each was started as the leader of its own session.
    """
    variables = {STACK_VARIABLE: stack_id} | ({CHILD_VARIABLE: child} if child else {})
    leaders = {mark.pid: mark.create_time for mark in sessions}
    living = {process.pid: process for process in psutil.process_iter()}
    roots = {pid for pid in living if _is_marked(pid, variables) or _is_in_session(living[pid], leaders)}
    family = _with_descendants(roots, _parents(living.values())) - _lineage()
    return tuple(living[pid] for pid in sorted(family) if _counts(living[pid]))


def end_processes(find: Find, *, grace_s: float) -> None:
    """End everything that ``find`` returns, asked again and again: first politely, after the grace by SIGKILL.

    Raises:
        Unavailable: something can't be killed.
    """
    if grace_s > 0:
        found = find()
        _signal(found, psutil.Process.terminate)
        psutil.wait_procs(found, timeout=grace_s)
    deadline = time.monotonic() + KILL_DEADLINE_S
    while found := find():
        if time.monotonic() > deadline:
            pids = ", ".join(str(process.pid) for process in found)
            raise Unavailable(f"processes {pids} survive SIGKILL; they hang in the kernel or belong to another user")
        _signal(found, psutil.Process.kill)
        psutil.wait_procs(found, timeout=POLL_S)


def _is_marked(pid: int, variables: Mapping[str, str]) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    entries = environment.split(b"\0")
    return all(f"{name}={value}".encode() in entries for name, value in variables.items())


def _is_in_session(process: psutil.Process, leaders: Mapping[int, float]) -> bool:
    try:
        session = os.getsid(process.pid)
        # No new process gets the pid of a leader that is gone while its session has members.
        return session in leaders and _leads(session, leaders[session])
    except (OSError, psutil.NoSuchProcess):
        return False


def _leads(session: int, create_time: float) -> bool:
    """The recorded leader itself, or nobody any more."""
    try:
        return _is_that(psutil.Process(session), create_time)
    except psutil.NoSuchProcess:
        return True


def _is_that(process: psutil.Process, create_time: float) -> bool:
    return abs(float(process.create_time()) - create_time) < CLOCK_SLACK_S


def _parents(processes: Iterable[psutil.Process]) -> dict[int, int]:
    parents = {}
    for process in processes:
        try:
            parents[process.pid] = process.ppid()
        except psutil.NoSuchProcess:
            continue
    return parents


def _with_descendants(roots: set[int], parents: Mapping[int, int]) -> set[int]:
    family = set(roots)
    grew = True
    while grew:
        born = {pid for pid, parent in parents.items() if parent in family} - family
        family |= born
        grew = bool(born)
    return family


def _lineage() -> set[int]:
    return {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}


def _counts(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _signal(processes: Iterable[psutil.Process], send: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        try:
            send(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
