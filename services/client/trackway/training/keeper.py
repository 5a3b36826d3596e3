"""The port between a session and what keeps its reports and checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from trackway_common.checkpoint.manifest import Manifest
from trackway_common.checkpoint.records import CursorRecord
from trackway_common.object_store import ObjectStore
from trackway_common.rank_protocol.phases import Phases

from trackway.training.phase_clock import PhaseClock
from trackway.training.tensor_file import TensorFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """This rank's state at a step boundary, laid out but not yet copied."""

    step: int
    number: int
    """Of the session's captures, from 1; the same on every rank."""
    file: TensorFile
    cursor: CursorRecord | None
    metrics: Mapping[str, float]
    clock: PhaseClock
    """The session's, to be read when the copy is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeSource:
    """A committed checkpoint, readable here."""

    store: ObjectStore
    manifest: Manifest


class Keeper(Protocol):
    """Keeps what one rank hands over. ``save`` and ``resume_source`` are called by all ranks at the same point."""

    def report(self, step: int, values: Mapping[str, float], phases: Phases) -> None:
        """Pass on values of a finished step, and where the time went so far; does not wait for anyone."""
        ...

    def warm(self, size_bytes: int) -> None:
        """Get memory ready for captures of about this size; goes on in the background."""
        ...

    def busy(self) -> bool:
        """Whether an earlier capture is still being written and ``save`` would wait for it."""
        ...

    def save(self, capture: Capture) -> None:
        """Take the capture; its tensors may change once this returns. Waits while an earlier one is being written.

        Raises:
            CaptureRefused: this rank's part is lost, the checkpoint with it; training can go on.
        """
        ...

    def resume_source(self) -> ResumeSource | None:
        """The checkpoint to continue from.

        Raises:
            CheckpointCorrupt: it is not what was committed.
        """
        ...

    def close(self) -> None:
        """Let go; what was saved goes on being written."""
        ...


class CaptureRefused(Exception):
    """A capture could not be taken over."""
