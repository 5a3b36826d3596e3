"""A person lets a held run go on: to its next attempt, or to its evaluation again."""

from __future__ import annotations

from dataclasses import replace

from trackway_common.errors import CommandRejected, FieldViolation, NotFound
from trackway_common.events import Fact, RunPhase, RunQueued, RunReleased

from trackway_scheduler.domain.budgets import attempts_of, attempts_spent
from trackway_scheduler.domain.commands import ReleaseRun
from trackway_scheduler.domain.state import RunState

NOT_HELD = "NOT_HELD"
ATTEMPTS_SPENT = "ATTEMPTS_SPENT"


def release(state: RunState, command: ReleaseRun) -> tuple[Fact, ...]:
    """The release, and what the run goes on with.

    Raises:
        CommandRejected: it isn't held, no reason is given, or all of its attempts are spent.
        NotFound: nobody submitted the run.
    """
    if state.phase is RunPhase.UNSPECIFIED or state.spec is None:
        raise NotFound(f"there is no run {state.run_id}")
    if state.phase is not RunPhase.HELD:
        raise CommandRejected(f"run {state.run_id} is {state.phase}, not HELD: nothing to release", reason=NOT_HELD)
    if not command.reason.strip():
        description = "is required: say what was done about what it was held for"
        raise CommandRejected(
            f"reason {description}", violations=(FieldViolation(field="reason", description=description),)
        )
    released = RunReleased(reason=command.reason, actor=command.actor, released_at=command.at)
    if state.evaluation is not None:
        return (released, replace(state.evaluation, ordered_at=command.at))
    if attempts_spent(state.ledger, state.attempt) >= attempts_of(state.spec):
        raise CommandRejected(
            f"run {state.run_id} has had all of its {attempts_of(state.spec)} attempts (max_attempts); "
            "submit a new run",
            reason=ATTEMPTS_SPENT,
        )
    return (released, RunQueued(attempt=state.attempt + 1, queued_at=command.at, not_before=command.at))
