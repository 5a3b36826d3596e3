"""A progress bar on stderr, on a terminal; nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from trackway.client.progress import Progress


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Lend what long work tells its progress to."""
    if not sys.stderr.isatty():
        from trackway.client.progress import SILENT

        yield SILENT
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _BarProgress(bar)


class _BarProgress:
    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._task: TaskID | None = None

    def begin(self, what: str, total_bytes: int) -> None:
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task(what, total=total_bytes)

    def advance(self, done_bytes: int) -> None:
        if self._task is not None:
            self._bar.advance(self._task, done_bytes)
