"""Resource names of checkpoints, and page tokens."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.checkpoint.layout import MAX_STEP
from trackway_common.errors import CommandRejected, FieldViolation

DEFAULT_PAGE = 50
MAX_PAGE = 1000
ANY_PROJECT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunName:
    project: str
    """``-`` where the caller named none: the store knows runs, not projects."""
    run: str
    """A run's id, or the beginning of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPointer:
    run: RunName
    checkpoint: str
    """``s000001200-e0004-<nonce>``, or a step: its newest commit."""

    @property
    def step(self) -> int | None:
        """The step, when a bare one was named."""
        plain = self.checkpoint.removeprefix("s")
        return int(plain) if plain.isascii() and plain.isdigit() and len(plain) < len(str(MAX_STEP)) else None


def parse_run(parent: str) -> RunName:
    """Read ``projects/{project}/runs/{run}``, ``runs/{run}`` or a run id.

    Raises:
        CommandRejected: it is none of these.
    """
    match parent.split("/"):
        case ["projects", project, "runs", run] if project and run:
            return RunName(project=project, run=run)
        case ["runs", run] | [run] if run:
            return RunName(project=ANY_PROJECT, run=run)
    raise refused("parent", f"{parent!r} names no run; write projects/PROJECT/runs/RUN, or the run's id")


def parse_checkpoint(name: str) -> CheckpointPointer:
    """Read ``projects/{project}/runs/{run}/checkpoints/{id}`` or ``{run}/checkpoints/{id}``.

    Raises:
        CommandRejected: it is neither.
    """
    run, _, checkpoint = name.partition("/checkpoints/")
    if not run or not checkpoint or "/" in checkpoint:
        raise refused("name", f"{name!r} names no checkpoint; write RUN/checkpoints/STEP, or its whole name")
    return CheckpointPointer(run=parse_run(run), checkpoint=checkpoint)


def format_checkpoint(run: RunName, checkpoint: str) -> str:
    """The whole name."""
    return f"projects/{run.project}/runs/{run.run}/checkpoints/{checkpoint}"


def page_size(asked: int) -> int:
    """How many to answer; 0 asked is the default.

    Raises:
        CommandRejected: a negative number.
    """
    if asked < 0:
        raise refused("page_size", f"{asked} is negative; leave it out for {DEFAULT_PAGE}")
    return min(asked or DEFAULT_PAGE, MAX_PAGE)


def parse_token(token: str) -> int | None:
    """Slot that the page begins below; None for the first page.

    Raises:
        CommandRejected: it was not made here.
    """
    if not token:
        return None
    if not token.isascii() or not token.isdigit() or len(token) > 20:
        raise refused("page_token", "it comes from no earlier answer; leave it out to begin anew")
    return int(token)


def refused(field: str, description: str) -> CommandRejected:
    """An error that names the field."""
    violation = FieldViolation(field=field, description=description)
    return CommandRejected(f"{field}: {description}", violations=(violation,))
