"""Starts a stack, or attaches to the one that runs in the folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping

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
    supervisor = None
    if holder(folder.lock) is None:
        _require_tools(options, environ, progress)
        supervisor = _start_supervisor(folder, options, environ)
    else:
        progress.note(f"{_holder_name(folder)} holds {folder.root}; attaching")
    _wait_until_ready(folder, supervisor, progress, timeout_s)
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


def _wait_until_ready(
    folder: StateFolder, started: subprocess.Popen[bytes] | None, progress: Progress, timeout_s: float
) -> None:
    deadline = time.monotonic() + timeout_s
    unknown_until = time.monotonic() + LOCKED_WITHOUT_RECORD_S
    while True:
        status = read_status(folder)
        if status.running:
            progress.show(status.children)
            if status.all_ready():
                return
        elif started is not None and started.poll() is not None:
            _check_died(folder, started)
            started = None
        elif started is None and time.monotonic() > unknown_until:
            raise Unavailable(f"{_holder_name(folder)} holds {folder.root}, but it is no stack's supervisor")
        if time.monotonic() > deadline:
            raise Unavailable(_late(folder, status, timeout_s))
        time.sleep(POLL_S)


def _check_died(folder: StateFolder, supervisor: subprocess.Popen[bytes]) -> None:
    """A supervisor that lost the race for the lock leaves the folder to the one that won."""
    if holder(folder.lock) is None:
        raise Unavailable(f"the supervisor ended at once (exit {supervisor.returncode})\n{_tail(folder, 'supervisor')}")


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
