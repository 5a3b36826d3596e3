"""Resource names as callers write them, and what they mean."""

from __future__ import annotations

from collections.abc import Collection

from trackway_common.errors import CommandRejected, FieldViolation, NotFound

MIN_PREFIX = 4
"""Shorter prefixes of a UUIDv7 are shared by everything of the same years."""
_SHOWN = 3


def run_name(project: str, run_id: str) -> str:
    """Resource name of a run; ``-`` stands for a project that a refused spec didn't tell."""
    return f"projects/{project or '-'}/runs/{run_id}"


def find_run(name: str, run_ids: Collection[str]) -> str:
    """Return the run that a resource name, an id or a unique prefix of one means.

    Raises:
        CommandRejected: it means several, or is too short to tell.
        NotFound: it means none.
    """
    wanted = name.rpartition("/")[2].lower()
    if wanted in run_ids:
        return wanted
    if len(wanted) < MIN_PREFIX:
        raise _invalid("name", f"{name!r} is too short; write at least {MIN_PREFIX} characters of the run's id")
    found = sorted(run_id for run_id in run_ids if run_id.startswith(wanted))
    if not found:
        raise NotFound(f"there is no run {name!r}")
    if len(found) > 1:
        shown = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
        raise _invalid("name", f"{name!r} means {len(found)} runs: {shown}; write more of the id")
    return found[0]


def project_of(parent: str, kind: str) -> str | None:
    """Project of a listing's parent; None for all of them.

    Raises:
        CommandRejected: it is no ``projects/{project}``.
    """
    if parent in {"", "-", "projects/-"}:
        return None
    word, _, project = parent.partition("/")
    if word != "projects" or not project or "/" in project:
        raise _invalid("parent", f"{parent!r} must be projects/PROJECT, or projects/- for the {kind} of all projects")
    return project


def _invalid(field: str, description: str) -> CommandRejected:
    return CommandRejected(description, violations=(FieldViolation(field=field, description=description),))
