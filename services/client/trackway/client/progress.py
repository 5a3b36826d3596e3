"""How long work tells how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told about one piece of work after another."""

    def begin(self, what: str, total_bytes: int) -> None:
        """A piece of work starts; the one before is over."""
        ...

    def advance(self, done_bytes: int) -> None:
        """So many more bytes are done."""
        ...


class SilentProgress:
    """Tells nobody."""

    def begin(self, what: str, total_bytes: int) -> None:
        pass

    def advance(self, done_bytes: int) -> None:
        pass


SILENT: Progress = SilentProgress()
