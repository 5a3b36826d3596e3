"""One trainer under its launcher: starts it, passes orders, tells how it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCHER = Path(__file__).with_name("launcher.py")


class ExecutionFailed(OSError):
    """The trainer's program could not be executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessEnd:
    """How a trainer's process ended; neither code nor signal is known when the launcher was killed."""

    exit_code: int | None
    signal: str | None
    peak_memory_bytes: int


class TrainerProcess:
    """A running trainer. ``wait`` belongs to one thread; ``terminate``, ``kill`` and ``dump_stacks`` to any."""

    def __init__(self, argv: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> None:
        """Start it.

        Raises:
            ExecutionFailed: no such program, or it may not be executed.
        """
        self._ordering = threading.Lock()
        self._control: int | None
        control_read, self._control = os.pipe()
        status_read, status_write = os.pipe()
        launched = (str(control_read), str(status_write), str(folder), *argv)
        try:
            launcher = subprocess.Popen(
                [sys.executable, "-I", "-S", str(LAUNCHER), *launched],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=environment,
                pass_fds=(control_read, status_write),
            )
        finally:
            os.close(control_read)
            os.close(status_write)
        # It goes on in a child of its own, which nobody's end but its own ends.
        launcher.wait()
        self._output = (launcher.stdout, launcher.stderr)
        self._status = os.fdopen(status_read, "r", encoding="ascii")
        self.pid = self._started(argv[0], folder)

    def take_output(self) -> tuple[int, int]:
        """Descriptors of its standard output and standard error; the caller reads and closes them."""
        stdout, stderr = self._output
        assert stdout is not None
        assert stderr is not None
        pair = os.dup(stdout.fileno()), os.dup(stderr.fileno())
        stdout.close()
        stderr.close()
        return pair

    def wait(self, ended: Callable[[], None] = lambda: None) -> ProcessEnd:
        """Wait until it ended and nothing that it started is left; ``ended`` is called in between."""
        words = self._status.readline().split()
        ended()
        last = self._status.read()  # To the launcher's own end.
        self._status.close()
        if last != "gone\n":
            # The launcher was killed; the kernel ended the trainer with it, what that had started is ended here.
            _kill_family(self.pid)
        if not words:
            return ProcessEnd(exit_code=None, signal=None, peak_memory_bytes=0)
        code = os.waitstatus_to_exitcode(int(words[1]))
        return ProcessEnd(
            exit_code=code if code >= 0 else None,
            signal=_signal_name(-code) if code < 0 else None,
            peak_memory_bytes=int(words[2]) * 1024,
        )

    def terminate(self) -> None:
        """Ask its process group to end (SIGTERM)."""
        self._order(b"T")

    def kill(self) -> None:
        """Kill it and everything below it."""
        self._order(b"K")

    def dump_stacks(self) -> None:
        """Send SIGUSR2; deadly to a process that has no handler for it."""
        self._order(b"S")

    def close(self) -> None:
        """Let go of it: what still runs is killed by the launcher."""
        with self._ordering:
            if self._control is not None:
                os.close(self._control)
            self._control = None

    def _order(self, order: bytes) -> None:
        with self._ordering:
            if self._control is None:
                return
            try:
                os.write(self._control, order)
            except BrokenPipeError:
                pass  # It has ended already.

    def _started(self, program: str, folder: Path) -> int:
        word, _, number = self._status.readline().partition(" ")
        if word == "started":
            return int(number)
        self.close()
        if word == "failed":
            raise ExecutionFailed(int(number), os.strerror(int(number)), f"{program} in {folder}")
        raise ExecutionFailed(0, "the launcher ended before the trainer began", program)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _kill_family(trainer: int) -> None:
    """Kill whatever inherited the trainer's number from it, and look again: it may go on starting processes."""
    killed: set[int] = set()
    while fresh := _family(trainer) - killed:
        for pid in fresh:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        killed |= fresh


def _family(trainer: int) -> set[int]:
    mark, processes = f"TRACKWAY_TRAINER_PID={trainer}".encode(), Path("/proc").iterdir()
    return {int(entry.name) for entry in processes if entry.name.isdigit() and mark in _environment(entry)}


def _environment(process: Path) -> list[bytes]:
    try:
        return (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return []  # It ended, or belongs to another user.
