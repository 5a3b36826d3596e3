"""Resource names of runs and attempts, and page tokens."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from trackway_common.errors import CommandRejected, FieldViolation

from trackway_observer.history.reader import Place

DEFAULT_PAGE = 50
MAX_PAGE = 1000
MAX_ATTEMPT = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which attempts are listed."""

    project: str = ""
    """Empty: of every project."""
    run: str = ""
    """A run's id or the beginning of one; empty: of every run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptName:
    """An attempt, or a run."""

    scope: Scope
    attempt: int | None
    """None where only the run is named."""


def parse_name(name: str) -> AttemptName:
    """Read ``projects/{project}/runs/{run}[/attempts/{n}]``, ``{run}/{n}`` or ``{run}``.

    Raises:
        CommandRejected: it is none of these.
    """
    match name.split("/"):
        case ["projects", project, "runs", run, "attempts", number] if project and run and _is_number(number):
            return AttemptName(scope=Scope(project=_project(project), run=run), attempt=int(number))
        case ["projects", project, "runs", run] if project and run:
            return AttemptName(scope=Scope(project=_project(project), run=run), attempt=None)
        case [run, number] | [run, "attempts", number] if run and _is_number(number):
            return AttemptName(scope=Scope(run=run), attempt=int(number))
        case [run] if run:
            return AttemptName(scope=Scope(run=run), attempt=None)
    raise refused("name", f"{name!r} names no attempt; write RUN/ATTEMPT, such as 0199f3a1/1")


def parse_attempt(name: str) -> AttemptName:
    """Read the name of one attempt.

    Raises:
        CommandRejected: it names a run, or nothing.
    """
    parsed = parse_name(name)
    if parsed.attempt is None:
        raise refused("name", f"{name!r} names a run; write {name}/1 for its first attempt")
    return parsed


def parse_parent(parent: str) -> Scope:
    """Read ``projects/{project}/runs/{run}``, a run id, ``projects/{project}`` or ``projects/-``.

    Raises:
        CommandRejected: it is none of these.
    """
    match parent.split("/"):
        case ["projects", project] if project:
            return Scope(project=_project(project))
        case ["projects", project, "runs", run] if project and run:
            return Scope(project=_project(project), run="" if run == "-" else run)
        case [run] if run:
            return Scope(run=run)
    raise refused("parent", f"{parent!r} has no attempts; write projects/PROJECT/runs/RUN, projects/- or a run's id")


def page_size(asked: int) -> int:
    """How many to answer; 0 asked is the default.

    Raises:
        CommandRejected: a negative number.
    """
    if asked < 0:
        raise refused("page_size", f"{asked} is negative; leave it out for {DEFAULT_PAGE}")
    return min(asked or DEFAULT_PAGE, MAX_PAGE)


def encode_token(last: Place) -> str:
    """Token that goes on behind this attempt."""
    return base64.urlsafe_b64encode(f"{last.queued_us}/{last.run_id}/{last.attempt}".encode()).decode()


def decode_token(token: str) -> Place | None:
    """What the token stands for; None for the first page.

    Raises:
        CommandRejected: it was not made here.
    """
    if not token:
        return None
    try:
        queued_us, run_id, attempt = base64.b64decode(token, altchars=b"-_", validate=True).decode().split("/")
        return Place(queued_us=_bounded(queued_us), run_id=run_id, attempt=_bounded(attempt))
    except (binascii.Error, ValueError) as error:
        raise refused("page_token", "it comes from no earlier answer; leave it out to begin anew") from error


def refused(field: str, description: str) -> CommandRejected:
    """An error that names the field."""
    violation = FieldViolation(field=field, description=description)
    return CommandRejected(f"{field}: {description}", violations=(violation,))


def _project(name: str) -> str:
    return "" if name == "-" else name


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and 0 < int(text[:12]) < MAX_ATTEMPT


def _bounded(text: str) -> int:
    number = int(text)
    if not 0 <= number < 1 << 53:
        raise ValueError(text)
    return number
