"""A local stack for tests: real Kafka, Ray, chDB and the five services, and ways to hurt them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trackway import TrackwayClient
from trackway.local.spec import StackOptions
from trackway.local.state import StateFolder, read_endpoints
from trackway.local.status import ChildState, ChildStatus, read_status
from trackway.local.up import up

TRACKWAY = Path(sys.executable).with_name("trackway")
CPUS = 8
POLL_S = 0.05
START_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Answer:
    """What one call of the command line printed and how it ended."""

    code: int
    out: str
    err: str


class Stack:
    """One stack in one state folder."""

    def __init__(self, state: Path, only: frozenset[str] | None = None) -> None:
        self.state = state
        self.folder = StateFolder(state)
        self._options = StackOptions(cpus=CPUS, only=only)

    def up(self) -> None:
        """Start it, or attach; returns when everything is ready."""
        up(self.folder, self._options, timeout_s=START_TIMEOUT_S)

    def down(self) -> None:
        """Stop it; the state stays."""
        assert self.cli("down").code == 0

    def client(self) -> TrackwayClient:
        """A client of this stack."""
        return TrackwayClient(state=self.state)

    @property
    def kafka(self) -> str:
        """The broker's address."""
        return read_endpoints(self.state)["kafka"]

    def cli(self, *arguments: str, timeout_s: float = 120.0) -> Answer:
        """Run the command line against this stack."""
        environment = {name: value for name, value in os.environ.items() if name != "TRACKWAY_ENDPOINT"}
        command = [str(TRACKWAY), *arguments, "--state", str(self.state)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, env=environment, check=False)
        return Answer(done.returncode, done.stdout, done.stderr)

    def child(self, name: str) -> ChildStatus:
        """A part of the stack as the supervisor last saw it."""
        return next(child for child in read_status(self.folder).children if child.name == name)

    def kill(self, name: str) -> ChildStatus:
        """SIGKILL a part's process and return how it was before."""
        before = self.child(name)
        assert before.process is not None, f"{name} does not run"
        os.kill(before.process.pid, signal.SIGKILL)
        return before

    @contextmanager
    def held_down(self, name: str) -> Iterator[None]:
        """SIGKILL a part and keep it down inside the block: its supervisor stands still meanwhile."""
        supervisor = read_status(self.folder).supervisor
        assert supervisor is not None
        os.kill(supervisor.pid, signal.SIGSTOP)
        try:
            before = self.kill(name)
            yield
        finally:
            os.kill(supervisor.pid, signal.SIGCONT)
        self.wait_restarted(before)

    def wait_restarted(self, before: ChildStatus, timeout_s: float = 60.0) -> None:
        """Wait until a killed part is ready again as another process."""

        def ready() -> bool:
            now = self.child(before.name)
            return now.state is ChildState.READY and now.process != before.process

        wait_until(ready, timeout_s, what=f"{before.name} to be restarted")


def wait_until(holds: Callable[[], bool], timeout_s: float, *, what: str) -> None:
    """Poll until something outside of this process is true; AssertionError when it never is."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"waited {timeout_s} s for {what}"
        time.sleep(POLL_S)


def running_stack(state: Path, only: frozenset[str] | None = None) -> Iterator[Stack]:
    """Start a stack or some of its parts, hand it out, stop it."""
    stack = Stack(state, only)
    try:
        stack.up()
        yield stack
    finally:
        stack.cli("down")
