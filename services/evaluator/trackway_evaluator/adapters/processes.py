"""Evaluation processes: started in a session of their own, or found alive after the evaluator's restart."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol


class Process(Protocol):
    """A process that evaluates."""

    @property
    def pid(self) -> int:
        """Its process id, also of its session."""
        ...

    async def wait(self) -> int | None:
        """Exit status once it ended, negative for a signal; None where only its parent could know."""
        ...

    def kill(self) -> None:
        """End it and what it started; nothing happens when it is gone."""
        ...


class StartedProcess:
    """A child of this evaluator."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> int | None:
        return await self._process.wait()

    def kill(self) -> None:
        _kill_session(self._process.pid)


class AdoptedProcess:
    """A child of an evaluator that is gone."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self._pid = pid
        self._descriptor = descriptor

    @property
    def pid(self) -> int:
        return self._pid

    async def wait(self) -> int | None:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        loop.add_reader(self._descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._descriptor)
            self.release()
        return None

    def kill(self) -> None:
        _kill_session(self._pid)

    def release(self) -> None:
        """Stop watching it; not to be used afterwards."""
        os.close(self._descriptor)


async def start(argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> StartedProcess:
    """Start a process in its own session, with its output in the folder.

    Raises:
        OSError: it could not be started.
    """
    with (folder / "stderr.log").open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=folder,
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return StartedProcess(process)


def adopt(pid: int) -> AdoptedProcess | None:
    """Watch a process that another one started; None when it is gone."""
    try:
        return AdoptedProcess(pid, os.pidfd_open(pid))
    except ProcessLookupError:
        return None


def _kill_session(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
