"""Resource names of evaluations, and page tokens."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from trackway_common.errors import CommandRejected, FieldViolation

DEFAULT_PAGE = 50
MAX_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which evaluations are listed."""

    project: str = ""
    """Empty: of every project."""
    run_id: str = ""
    """Empty: of every run."""


def parse_evaluation_name(name: str) -> tuple[str, str]:
    """Project ('' for any) and id, or the beginning of one.

    Raises:
        CommandRejected: it is no evaluation's name.
    """
    parts = name.split("/")
    if len(parts) == 1 and name:
        return "", name
    if len(parts) == 4 and (parts[0], parts[2]) == ("projects", "evaluations") and parts[1] and parts[3]:
        return "" if parts[1] == "-" else parts[1], parts[3]
    raise _refused("name", f"{name!r} names no evaluation; write projects/PROJECT/evaluations/ID, or the ID alone")


def parse_parent(parent: str) -> Scope:
    """What `projects/{project}`, `projects/-`, `projects/{project}/runs/{run}` or a run's id covers.

    Raises:
        CommandRejected: it is none of these.
    """
    parts = parent.split("/")
    match parts:
        case ["projects", project] if project:
            return Scope(project="" if project == "-" else project)
        case ["projects", project, "runs", run_id] if project and run_id:
            return Scope(project="" if project == "-" else project, run_id=run_id)
        case [run_id] if run_id:
            return Scope(run_id=run_id)
    raise _refused("parent", f"{parent!r} has no evaluations; write projects/PROJECT, projects/- or a run's id")


def page_size(asked: int) -> int:
    """How many to answer; 0 asked is the default.

    Raises:
        CommandRejected: a negative number.
    """
    if asked < 0:
        raise _refused("page_size", f"{asked} is negative; leave it out for {DEFAULT_PAGE}")
    return min(asked or DEFAULT_PAGE, MAX_PAGE)


def encode_token(last: tuple[int, str]) -> str:
    """Token that goes on after the evaluation of this time (ms) and id."""
    return base64.urlsafe_b64encode(f"{last[0]}/{last[1]}".encode()).decode()


def decode_token(token: str) -> tuple[int, str] | None:
    """What the token stands for; None for the first page.

    Raises:
        CommandRejected: it was not made here.
    """
    if not token:
        return None
    try:
        at_ms, _, evaluation_id = base64.b64decode(token, altchars=b"-_", validate=True).decode().partition("/")
        return int(at_ms), evaluation_id
    except (binascii.Error, ValueError) as error:
        raise _refused("page_token", "it comes from no earlier answer; leave it out to begin anew") from error


def _refused(field: str, description: str) -> CommandRejected:
    violation = FieldViolation(field=field, description=description)
    return CommandRejected(f"{field}: {description}", violations=(violation,))
