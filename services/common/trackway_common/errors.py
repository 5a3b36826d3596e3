"""One error tree, split by who can act.

TrackwayError
├── CommandRejected   the caller asked for something that can't be; never retried
│   └── NotFound      what the caller named does not exist
├── Unavailable       a part is away for now; retry later
├── Fenced            another writer owns this scope with a higher term; stop
└── CorruptLog        the log says something that must not be; halt and page

Only ``rpc_errors`` maps these to ``google.rpc.Status``.
"""

from __future__ import annotations

from dataclasses import dataclass


class TrackwayError(Exception):
    """Root of everything that Trackway raises on purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldViolation:
    """One thing wrong with one field of what the caller sent."""

    field: str
    """Dotted path as the caller wrote it, such as ``topology.world_size``."""
    description: str
    """What is wrong and what to write instead."""


class CommandRejected(TrackwayError):
    """The command can't be carried out as asked; asking again gives the same answer."""

    def __init__(self, message: str, *, reason: str = "INVALID", violations: tuple[FieldViolation, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.violations = violations


class NotFound(CommandRejected):
    """What the caller named does not exist."""

    def __init__(self, message: str, *, reason: str = "NOT_FOUND") -> None:
        super().__init__(message, reason=reason)


class Unavailable(TrackwayError):
    """A part that this needs is away for now; the same call may succeed later."""


class Fenced(TrackwayError):
    """A writer with a higher term owns the scope: whoever raised this must stop writing to it."""


class CorruptLog(TrackwayError):
    """The log holds what no correct writer can have written; a decider halts here."""
