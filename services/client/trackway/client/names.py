"""Names of runs, attempts and checkpoints as people write them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trackway_common.errors import CommandRejected, FieldViolation
from trackway_common.ids import is_uuid7

RunLookup = Callable[[str], str]
"""Gives the full run id of a prefix or a resource name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptName:
    """``RUN`` or ``RUN/ATTEMPT``; attempt 0 is the newest one."""

    run: str
    attempt: int = 0


def parse_attempt(text: str) -> AttemptName:
    """Read ``RUN``, ``RUN/ATTEMPT`` or ``projects/P/runs/RUN[/attempts/ATTEMPT]``.

    Raises:
        CommandRejected: it is none of these.
    """
    parts = _short(text).split("/")
    match parts:
        case [run] if run:
            return AttemptName(run=run)
        case [run, number] | [run, "attempts", number] if run and number.isdecimal() and int(number) > 0:
            return AttemptName(run=run, attempt=int(number))
    raise _rejected("attempt", f"{text!r} names no attempt; write RUN or RUN/ATTEMPT, such as {parts[0] or 'RUN'}/1")


def run_id(text: str, lookup: RunLookup) -> str:
    """Return the full run id, asking only when the text is short."""
    short = _short(text)
    if is_uuid7(short):
        return short
    if not short or "/" in short:
        raise _rejected("run", f"{text!r} names no run; write its id, a unique beginning of it, or projects/P/runs/RUN")
    return lookup(short)


def checkpoint_name(text: str, lookup: RunLookup) -> str:
    """Return ``RUN/checkpoints/ID`` of ``RUN/ID``, ``RUN/STEP`` or a resource name.

    Raises:
        CommandRejected: it is none of these.
    """
    match _short(text).split("/"):
        case [run, checkpoint] | [run, "checkpoints", checkpoint] if run and checkpoint:
            return f"{run_id(run, lookup)}/checkpoints/{checkpoint}"
    raise _rejected("checkpoint", f"{text!r} names no checkpoint; write RUN/STEP or RUN/s40-e1-…")


def _short(text: str) -> str:
    """Cut ``projects/{project}/runs/`` off."""
    parts = text.split("/")
    return "/".join(parts[3:]) if parts[0] == "projects" and parts[2:3] == ["runs"] else text


def _rejected(field: str, description: str) -> CommandRejected:
    return CommandRejected(description, violations=(FieldViolation(field=field, description=description),))
