"""Starts a stack, or attaches to the one that runs in the folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial

from trackway_common.errors import Unavailable

from trackway.local.lock import holder
from trackway.local.logs import last_lines
from trackway.local.maven import ensure_jars, has_jars, libs_folder, require_tool
from trackway.local.progress import Progress, SilentProgress
from trackway.local.spec import StackOptions
from trackway.local.state import StackRecord, StateFolder, read_record
from trackway.local.status import ChildState, ChildStatus, StackStatus, read_status

READY_TIMEOUT_S = 90.0
LOCKED_WITHOUT_RECORD_S = 10.0
"""A supervisor writes its record within a second of taking the lock; leftovers that it has to end come before."""
POLL_S = 0.1
LOG_LINES = 20

StartSupervisor = Callable[[], "subprocess.Popen[bytes]"]


def up(
    folder: StateFolder,
    options: StackOptions,
    *,
    progress: Progress | None = None,
    timeout_s: float = READY_TIMEOUT_S,
    environ: Mapping[str, str] = os.environ,
) -> StackRecord:
    """Return once every child of the folder's stack is ready.

    Raises:
        Unavailable: a tool is missing, somebody else holds the folder, or a child did not get ready in time; the
            message then ends with the last lines of its log. What did start is left running.
    """
    progress = progress or SilentProgress()
    folder.create()
    start = partial(_start_supervisor, folder, options, environ)
    if holder(folder.lock) is None:
        _require_tools(options, environ, progress)
    else:
        progress.note(f"{_holder_name(folder)} holds {folder.root}; attaching")
    _wait_until_ready(folder, start, progress, timeout_s)
    record = read_record(folder)
    assert record is not None
    return record


def _require_tools(options: StackOptions, environ: Mapping[str, str], progress: Progress) -> None:
    if options.only is not None and "kafka" not in options.only:
        return
    require_tool("java")
    libs = libs_folder(environ)
    if not has_jars(libs):
        progress.note(f"resolving Kafka's jars into {libs} (once)")
        ensure_jars(libs)


def _start_supervisor(
    folder: StateFolder, options: StackOptions, environ: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "trackway.local.supervisor", "--state", str(folder.root), "--cpus", str(options.cpus)]
    if options.only is not None:
        argv += ["--only", ",".join(sorted(options.only))]
    with folder.log_of("supervisor").open("ab") as output:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environ,
            cwd=folder.root,
            start_new_session=True,
        )


def _wait_until_ready(folder: StateFolder, start: StartSupervisor, progress: Progress, timeout_s: float) -> None:
    """Return when all is ready; start a supervisor as soon as nobody holds the folder."""
    began = time.monotonic()
    started: subprocess.Popen[bytes] | None = None
    while True:
        status = read_status(folder)
        if status.running:
            progress.show(status.children)
            if status.all_ready():
                return
        elif holder(folder.lock) is None:
            started = _started_once(folder, started, start)
        elif time.monotonic() - began > LOCKED_WITHOUT_RECORD_S:
            raise Unavailable(f"{_holder_name(folder)} holds {folder.root}, but it is no stack's supervisor")
        if time.monotonic() - began > timeout_s:
            raise Unavailable(_late(folder, status, timeout_s))
        time.sleep(POLL_S)


def _started_once(
    folder: StateFolder, started: subprocess.Popen[bytes] | None, start: StartSupervisor
) -> subprocess.Popen[bytes]:
    if started is None:
        return start()
    # It may not have come to the lock yet, and one that lost the race for it leaves the folder to the winner.
    if started.poll() is not None and holder(folder.lock) is None and not read_status(folder).running:
        raise Unavailable(f"the supervisor ended (exit {started.returncode})\n{_tail(folder, 'supervisor')}")
    return started


def _late(folder: StateFolder, status: StackStatus, timeout_s: float) -> str:
    late = [child for child in status.children if child.state is not ChildState.READY]
    if not late:
        return f"no child was started in {timeout_s:.0f} s\n{_tail(folder, 'supervisor')}"
    # Who waits for another is not to blame.
    blamed = [child for child in late if child.state is not ChildState.WAITING] or late
    sections = [f"{_described(child)}\n{_tail(folder, child.name)}" for child in blamed]
    return f"not ready after {timeout_s:.0f} s: {', '.join(child.name for child in late)}\n" + "\n".join(sections)


def _described(child: ChildStatus) -> str:
    restarts = f", {child.restarts} restarts" if child.restarts else ""
    detail = f": {child.detail}" if child.detail else ""
    return f"{child.name} ({child.state}{restarts}){detail}"


def _tail(folder: StateFolder, name: str) -> str:
    file = folder.log_of(name)
    return "\n".join([f"last lines of {file}:", *(f"  {line}" for line in last_lines(file, LOG_LINES))])


def _holder_name(folder: StateFolder) -> str:
    pid = holder(folder.lock)
    return f"process {pid}" if pid else "another process"
