"""How `up` and `down` tell a person what they wait for."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TextIO

from trackway.local.status import ChildState, ChildStatus

if TYPE_CHECKING:
    from rich.status import Status


class Progress(Protocol):
    """Told what changes; called often."""

    def note(self, text: str) -> None:
        """One thing happened."""
        ...

    def show(self, children: tuple[ChildStatus, ...]) -> None:
        """The children are like this now."""
        ...


class SilentProgress:
    """Tells nobody."""

    def note(self, text: str) -> None:
        pass

    def show(self, children: tuple[ChildStatus, ...]) -> None:
        pass


class LineProgress:
    """One plain line a change, for logs and pipes."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._began = time.monotonic()
        self._states: dict[str, ChildState] = {}

    def note(self, text: str) -> None:
        self._line(text)

    def show(self, children: tuple[ChildStatus, ...]) -> None:
        for child in children:
            if child.state in _TOLD and self._states.get(child.name) is not child.state:
                detail = f": {child.detail}" if child.detail else ""
                self._line(f"{child.name} {child.state}{detail}")
            self._states[child.name] = child.state

    def _line(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:5.1f} s  {text}", file=self._out, flush=True)


_TOLD = frozenset({ChildState.READY, ChildState.UNHEALTHY, ChildState.RESTARTING})


class TerminalProgress:
    """The same lines above a spinner that names what is awaited."""

    def __init__(self, status: Status) -> None:
        self._status = status
        self._lines = LineProgress(_Above(status))  # type: ignore[arg-type] # print() needs no more than write and flush

    def note(self, text: str) -> None:
        self._lines.note(text)

    def show(self, children: tuple[ChildStatus, ...]) -> None:
        self._lines.show(children)
        awaited = [child.name for child in children if child.state is not ChildState.READY]
        self._status.update(f"waiting for {', '.join(awaited)}" if awaited else "ready")


class _Above:
    """Writes above the spinner."""

    def __init__(self, status: Status) -> None:
        self._status = status

    def write(self, text: str) -> int:
        if text.strip():
            self._status.console.print(text, highlight=False, markup=False, soft_wrap=True)
        return len(text)

    def flush(self) -> None:
        pass


@contextmanager
def progress_on(stream: TextIO = sys.stderr) -> Iterator[Progress]:
    """Show progress on a stream: with a spinner when it is a terminal."""
    if not stream.isatty():
        yield LineProgress(stream)
        return
    from rich.console import Console

    with Console(file=stream).status("starting") as status:
        yield TerminalProgress(status)


def endpoint_lines(endpoints: Mapping[str, str]) -> Iterator[str]:
    """One line an endpoint, aligned."""
    width = max((len(name) for name in endpoints), default=0)
    for name, endpoint in endpoints.items():
        yield f"{name:<{width}}  {endpoint}"
