"""One child's life: wait for others, start, become ready, be watched, die, start again; end when cancelled."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO

from trackway_common.clock import Clock
from trackway_common.errors import TrackwayError, Unavailable

from trackway.local.processes import CHILD_VARIABLE, end_processes, mark_of, stack_processes
from trackway.local.restart import Backoff
from trackway.local.spec import ChildSpec, Launch
from trackway.local.state import ProcessMark, StateFolder
from trackway.local.status import ChildState, StatusBoard

log = logging.getLogger(__name__)

STARTING_POLL_S = 0.1
HEALTH_POLL_S = 5.0
RETRY_S = 0.3
LOG_LIMIT_BYTES = 64 << 20
"""A log that is longer at a start is set aside once (``.1``), so that a stack may run for months."""


class Child:
    """Runs one spec; ``run`` is a task of the supervisor."""

    def __init__(
        self, spec: ChildSpec, folder: StateFolder, shared_env: Mapping[str, str], board: StatusBoard, clock: Clock
    ) -> None:
        self.spec = spec
        self.was_ready = asyncio.Event()
        self._folder = folder
        self._env = {**shared_env, **spec.env, CHILD_VARIABLE: spec.name}
        self._stack_id = shared_env["TRACKWAY_STACK_ID"]
        self._board = board
        self._clock = clock
        self._ready_at: float | None = None
        board.add(spec.name, spec.endpoint)

    async def run(self, dependencies: Sequence[asyncio.Event]) -> None:
        """Keep the child alive until cancelled; then stop it and return."""
        try:
            for dependency in dependencies:
                await dependency.wait()
            backoff = Backoff()
            while True:
                cause = await self._live()
                lived_s = self._clock.monotonic() - self._ready_at if self._ready_at is not None else 0.0
                delay_s = backoff.after(lived_s)
                log.warning("child died", extra={"child": self.spec.name, "cause": cause, "restart_in_s": delay_s})
                self._board.change(self.spec.name, ChildState.RESTARTING, detail=cause)
                await self._clock.sleep(delay_s)
        finally:
            self._board.change(self.spec.name, ChildState.STOPPED)

    async def _live(self) -> str:
        """Run the child once and return what ended it."""
        self._ready_at = None
        self._board.change(self.spec.name, ChildState.STARTING)
        try:
            if self.spec.before_start is not None:
                await self.spec.before_start()
            process, launch = await self._start()
        except TrackwayError as error:
            return str(error)
        mark = mark_of(process.pid)
        try:
            async with asyncio.TaskGroup() as group:
                watching = group.create_task(self._watch(launch, mark))
                code = await process.wait()
                watching.cancel()
        finally:
            await self._end(process, mark)
        return _cause(code)

    async def _start(self) -> tuple[asyncio.subprocess.Process, Launch]:
        file = self._folder.log_of(self.spec.name)
        _set_aside(file)
        with file.open("ab") as output:
            launch = Launch(log_file=file, log_offset=output.tell())
            return await self._spawn(output), launch

    async def _spawn(self, output: IO[bytes]) -> asyncio.subprocess.Process:
        try:
            process = await asyncio.create_subprocess_exec(
                *self.spec.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                env=self._env,
                cwd=self._folder.root,
                start_new_session=True,
            )
            if self.spec.niceness > os.getpriority(os.PRIO_PROCESS, 0):
                # Before it has threads: those inherit the priority.
                os.setpriority(os.PRIO_PROCESS, process.pid, self.spec.niceness)
        except OSError as error:
            raise Unavailable(f"{self.spec.argv[0]} can't be started: {error}") from error
        return process

    async def _watch(self, launch: Launch, mark: ProcessMark | None) -> None:
        """Probe until cancelled."""
        self._board.change(self.spec.name, ChildState.STARTING, process=mark)
        ready = False
        while True:
            answered = await self.spec.answers(launch)
            if ready and not answered:
                detail = "runs, but does not answer"
                self._board.change(self.spec.name, ChildState.UNHEALTHY, process=mark, detail=detail)
            elif answered and not ready:
                answered = await self._complete(mark)
            ready = answered
            await self._clock.sleep(HEALTH_POLL_S if ready else STARTING_POLL_S)

    async def _complete(self, mark: ProcessMark | None) -> bool:
        """Do what follows the first answer, and tell whether the child is ready now."""
        try:
            if self.spec.after_answer is not None:
                await self.spec.after_answer()
        except TrackwayError as error:
            waits = isinstance(error, Unavailable)
            state = ChildState.STARTING if waits else ChildState.UNHEALTHY
            self._board.change(self.spec.name, state, process=mark, detail=str(error))
            await self._clock.sleep(RETRY_S)
            return False
        self._ready_at = self._ready_at or self._clock.monotonic()
        self._board.change(self.spec.name, ChildState.READY, process=mark)
        self.was_ready.set()
        return True

    async def _end(self, process: asyncio.subprocess.Process, mark: ProcessMark | None) -> None:
        """Stop the process, then whatever it left behind in its name."""
        if process.returncode is None:
            await _terminate(process, self.spec.stop_grace_s)
        sessions = [mark] if mark else []

        left = partial(stack_processes, self._stack_id, child=self.spec.name, sessions=sessions)
        try:
            await asyncio.to_thread(end_processes, left, grace_s=0.0)
        except Unavailable as error:
            log.error("child left processes behind", extra={"child": self.spec.name, "error": str(error)})


async def _terminate(process: asyncio.subprocess.Process, grace_s: float) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(grace_s):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


def _cause(code: int) -> str:
    if code >= 0:
        return f"exited with {code}"
    return f"killed by {signal.Signals(-code).name}"


def _set_aside(file: Path) -> None:
    if file.exists() and file.stat().st_size > LOG_LIMIT_BYTES:
        file.replace(file.with_name(file.name + ".1"))
