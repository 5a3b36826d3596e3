"""Stops a stack and makes sure that nothing is left, whoever is still alive to help."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace

import psutil

from trackway.local.leftovers import end_leftovers
from trackway.local.lock import holder
from trackway.local.processes import is_alive
from trackway.local.progress import Progress, SilentProgress
from trackway.local.ray_head import temp_folder
from trackway.local.state import ProcessMark, StackRecord, StateFolder, read_record, write_record
from trackway.local.status import ChildState, read_status

STOP_TIMEOUT_S = 40.0
"""Longer than the children's graces, level by level."""
KILL_WAIT_S = 5.0
RECORD_WAIT_S = 5.0
POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What `down` found and did."""

    was_running: bool
    """A supervisor was there to be asked."""
    leftovers: int
    """Processes that it had to end itself."""


def down(folder: StateFolder, *, progress: Progress | None = None, timeout_s: float = STOP_TIMEOUT_S) -> Stopped:
    """Stop the folder's stack; its state stays.

    Raises:
        Unavailable: something can't be killed.
    """
    progress = progress or SilentProgress()
    record = _settled_record(folder)
    if record is None:
        return Stopped(was_running=False, leftovers=0)
    was_running = is_alive(record.supervisor)
    if was_running and record.supervisor is not None:
        _stop_supervisor(folder, record.supervisor, progress, timeout_s)
    leftovers = end_leftovers(folder, record)
    if leftovers:
        progress.note(f"ended {leftovers} processes that were left")
    shutil.rmtree(temp_folder(record.stack_id), ignore_errors=True)
    write_record(folder, replace(record, endpoints={}, supervisor=None))
    return Stopped(was_running=was_running, leftovers=leftovers)


def _settled_record(folder: StateFolder) -> StackRecord | None:
    """Return the record; a supervisor that has just taken the lock gets a moment to write it."""
    deadline = time.monotonic() + RECORD_WAIT_S
    while True:
        record = read_record(folder)
        supervised = record is not None and is_alive(record.supervisor)
        if supervised or holder(folder.lock) is None or time.monotonic() > deadline:
            return record
        time.sleep(POLL_S)


def _stop_supervisor(folder: StateFolder, mark: ProcessMark, progress: Progress, timeout_s: float) -> None:
    progress.note(f"stopping process {mark.pid}")
    process = psutil.Process(mark.pid)
    process.terminate()
    deadline = time.monotonic() + timeout_s
    told: set[str] = set()
    while is_alive(mark):
        for child in read_status(folder).children:
            if child.state is ChildState.STOPPED and child.name not in told:
                progress.note(f"{child.name} stopped")
                told.add(child.name)
        if time.monotonic() > deadline:
            progress.note(f"it did not stop in {timeout_s:.0f} s; ending everything")
            process.kill()
            process.wait(KILL_WAIT_S)
            return
        time.sleep(POLL_S)
