"""What servicers answer from, once this process has read the log far enough."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.clock import Clock
from trackway_common.errors import Unavailable
from trackway_common.object_store import BlobStore

from trackway_scheduler.shell.draws import Draws
from trackway_scheduler.shell.fleet import Fleet
from trackway_scheduler.shell.journal import Journal
from trackway_scheduler.shell.outside_view import OutsideView
from trackway_scheduler.shell.queue import QueueBoard
from trackway_scheduler.shell.records import Records
from trackway_scheduler.shell.registration import DatasetDesk
from trackway_scheduler.shell.submission import SubmissionDesk


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The scheduler's inside, as its gRPC services see it."""

    records: Records
    outside: OutsideView
    fleet: Fleet
    board: QueueBoard
    journal: Journal
    submissions: SubmissionDesk
    datasets: DatasetDesk
    blobs: BlobStore
    clock: Clock
    draws: Draws


class Opening:
    """Closed at first: a half-read log would say that runs don't exist."""

    def __init__(self) -> None:
        self._parts: Parts | None = None

    def open(self, parts: Parts) -> None:
        """Answer from now on."""
        self._parts = parts

    @property
    def parts(self) -> Parts:
        """The parts; raises Unavailable until they are ready."""
        if self._parts is None:
            raise Unavailable("this scheduler is still reading the log; ask again in a moment")
        return self._parts
