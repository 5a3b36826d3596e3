"""What a run may still spend after an attempt's end: the reason table applied to the run's own ledger.

A budget counts retries granted. Those that count without progress begin again once a checkpoint of a higher
step was committed; another reason in between does not reset them, so a run can't live on by alternating.
`max_attempts` counts every attempt but those that say nothing against the run: the cluster never granted them, or
they were interrupted (preempted, drained, out of wall time) after progress.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from trackway_common.events import (
    Change,
    CheckpointRef,
    FailureDomain,
    NextMove,
    Progress,
    RetryOverride,
    RunSpec,
    TerminationReason,
)
from trackway_common.reasons import GENERAL_CEILING, MAX_ATTEMPTS, UNLIMITED, Backoff, Counting, ReasonPolicy, policy_of

from trackway_scheduler.domain.remedies import Remedy
from trackway_scheduler.domain.state import Ledger

CEILING = "ceiling"
LIFE = "max_attempts"
_SECOND_WAIT_S = 15.0
"""Where the first retry waits nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What follows an end, and which budget said so."""

    move: NextMove
    ledger: str
    spent: int
    budget: int
    backoff_s: float
    why: str


def progress_of(ledger: Ledger, last_committed: CheckpointRef | None) -> Progress:
    """Tell whether a checkpoint of a higher step was committed than any that was seen before."""
    if last_committed is None:
        return Progress.NONE
    known = ledger.progress_step
    return Progress.ADVANCED if known is None or last_committed.step > known else Progress.NONE


def measured(ledger: Ledger, last_committed: CheckpointRef | None) -> Ledger:
    """Return the ledger after what was committed is taken into account."""
    if last_committed is None or progress_of(ledger, last_committed) is not Progress.ADVANCED:
        return ledger
    return replace(ledger, since_progress=(), progress_step=last_committed.step)


def granted(ledger: Ledger, reason: TerminationReason, progress: Progress) -> Ledger:
    """Return the ledger after one more retry; ``progress`` is the ended attempt's."""
    return replace(
        ledger,
        since_progress=(*ledger.since_progress, reason),
        lifetime=(*ledger.lifetime, reason),
        uncounted=ledger.uncounted + (not is_counted(reason, progress)),
    )


def is_counted(reason: TerminationReason, progress: Progress) -> bool:
    """Tell whether an attempt that ended so is one of the run's `max_attempts`."""
    policy = policy_of(reason)
    if policy.under_ceiling:
        return True
    return policy.budget != UNLIMITED and progress is not Progress.ADVANCED


def rule(
    ledger: Ledger, spec: RunSpec, attempts: int, reason: TerminationReason, jitter: float, remedy: Remedy
) -> Ruling:
    """Rule on the next move.

    Args:
        ledger: already measured.
        attempts: that count towards `max_attempts`, the ended one included if it does.
    """
    policy = policy_of(reason)
    override, budget, spent = _override(spec, reason), budget_of(spec, reason), spent_of(ledger, reason)
    if policy.domain is FailureDomain.DATA:
        return _end(policy.exhausted, reason.value, spent, 0, f"{reason} is not retried.")
    if budget != UNLIMITED and spent >= budget:
        return _end(policy.exhausted, reason.value, spent, budget, _spent_out(policy, spent, budget))
    if policy.budget_with_change > 0 and not remedy.changes:
        return _end(policy.exhausted, reason.value, spent, budget, remedy.missing)
    if policy.under_ceiling and (total := under_ceiling(ledger)) >= ceiling_of(spec):
        why = f"{total} retries in a row brought no newly committed checkpoint, which is the general ceiling."
        return _end(NextMove.STOP, CEILING, total, ceiling_of(spec), why)
    if attempts >= attempts_of(spec):
        why = f"The run has had all of its {attempts_of(spec)} attempts."
        return _end(NextMove.STOP, LIFE, attempts, attempts_of(spec), why)
    return Ruling(
        move=NextMove.RETRY,
        ledger=reason.value,
        spent=spent + 1,
        budget=budget,
        backoff_s=_wait(policy, override, spent, jitter, remedy),
        why=_retry_sentence(policy, spent + 1, budget) + _changed(remedy.changes),
    )


def budget_of(spec: RunSpec, reason: TerminationReason) -> int:
    """Retries that a reason may cost this run; UNLIMITED where it may cost any number."""
    policy, override = policy_of(reason), _override(spec, reason)
    if override is not None:
        return override.max
    return policy.budget_with_change or policy.budget


def spent_of(ledger: Ledger, reason: TerminationReason) -> int:
    """Retries that a reason has cost so far, as its budget counts them."""
    policy = policy_of(reason)
    counted = ledger.lifetime if policy.counting is Counting.LIFETIME else ledger.since_progress
    return counted.count(policy.reason)


def under_ceiling(ledger: Ledger) -> int:
    """Retries that count towards the general ceiling."""
    return sum(policy_of(reason).under_ceiling for reason in ledger.since_progress)


def ceiling_of(spec: RunSpec) -> int:
    """The general ceiling of a run."""
    return spec.retry_ceiling or GENERAL_CEILING


def attempts_of(spec: RunSpec) -> int:
    """Attempts that a run may have over its life, of those that count."""
    return spec.max_attempts or MAX_ATTEMPTS


def attempts_spent(ledger: Ledger, attempt: int) -> int:
    """Attempts up to this one that count, itself included."""
    return attempt - ledger.uncounted


def span_of(reason: TerminationReason) -> str:
    """What a reason's budget is counted over, for people."""
    if policy_of(reason).counting is Counting.LIFETIME:
        return "over the run's life"
    return "without a newly committed checkpoint"


def backoff_seconds(backoff: Backoff, retry: int, jitter: float) -> float:
    """Wait before the n-th retry, n ≥ 1: doubling between the bounds, ± 20 % by ``jitter`` in 0..1."""
    doubled = max(backoff.first_s, _SECOND_WAIT_S) * 2.0 ** min(retry - 1, 32)
    plain = backoff.first_s if retry == 1 else min(backoff.last_s, doubled)
    return plain * (0.8 + 0.4 * jitter)


def _wait(policy: ReasonPolicy, override: RetryOverride | None, spent: int, jitter: float, remedy: Remedy) -> float:
    if override is not None and override.backoff_seconds is not None:
        return override.backoff_seconds
    if policy.reason is TerminationReason.CAPACITY_TIMEOUT and remedy.changes:
        # It asks for what it was not refused yet.
        return 0.0
    return backoff_seconds(policy.backoff, spent + 1, jitter)


def _override(spec: RunSpec, reason: TerminationReason) -> RetryOverride | None:
    return next((override for override in spec.retry if override.reason is reason), None)


def _end(move: NextMove, ledger: str, spent: int, budget: int, why: str) -> Ruling:
    return Ruling(move=move, ledger=ledger, spent=spent, budget=budget, backoff_s=0.0, why=why)


def _spent_out(policy: ReasonPolicy, spent: int, budget: int) -> str:
    if policy.exhausted is NextMove.EVALUATE:
        return "Training ended by itself; what it committed last decides."
    if budget > 0:
        return f"{policy.reason} has used its budget: {spent} of {budget} retries {span_of(policy.reason)}."
    return f"{policy.reason} is not retried."


def _retry_sentence(policy: ReasonPolicy, retry: int, budget: int) -> str:
    if budget == UNLIMITED:
        return f"{policy.reason} is retried without limit; this is retry {retry}."
    return f"{policy.reason} may be retried {_times(budget)} {span_of(policy.reason)}; this is retry {retry}."


def _changed(changes: tuple[Change, ...]) -> str:
    if not changes:
        return ""
    said = (f"{one.field} {one.before or 'none'} → {one.after or 'none'}" for one in changes)
    return f" Changed: {', '.join(said)}."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
