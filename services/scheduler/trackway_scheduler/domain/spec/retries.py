"""The spec's own words on retries: per reason, and the general ceiling."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.events import FailureDomain, NextMove, RetryOverride, TerminationReason
from trackway_common.fields import Fields, nearest
from trackway_common.reasons import GENERAL_CEILING, UNLIMITED, ReasonPolicy, policy_of

from trackway_scheduler.domain.ladder import LADDERS, ON_REQUEST
from trackway_scheduler.domain.spec.mutations import Declared, lacks, mutate

_ALL = "*"
_MAX_RETRIES = 1000
_MAX_CEILING = 1000
_NEVER = frozenset(
    {
        TerminationReason.CANCELLED_BY_USER,
        TerminationReason.CANCELLED_BY_ADMIN,
        TerminationReason.DEADLINE_EXCEEDED,
        TerminationReason.ADMISSION_INFEASIBLE,
        TerminationReason.BUDGET_EXHAUSTED,
        TerminationReason.QUOTA_REVOKED,
    }
)
"""Reasons that say that somebody, or the platform, does not want the run."""
_BY_NAME = {reason.value.lower(): reason for reason in TerminationReason if reason is not TerminationReason.UNSPECIFIED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """What the spec changes of the reason table."""

    overrides: tuple[RetryOverride, ...]
    ceiling: int


def retries(fields: Fields, declared: Declared) -> Retries:
    """Read `retry`.

    Args:
        declared: what the spec lets change between attempts; a rule that needs more contradicts it.
    """
    section = fields.section("retry")
    found = [_override(section, key, declared) for key in section.names() if key != _ALL]
    every = section.section(_ALL, ("ceiling",))
    ceiling = every.whole("ceiling", GENERAL_CEILING, at_least=1, at_most=_MAX_CEILING)
    return Retries(overrides=tuple(one for one in found if one is not None), ceiling=ceiling)


def _override(section: Fields, key: str, declared: Declared) -> RetryOverride | None:
    reason = _BY_NAME.get(key.lower())
    if reason is None:
        section.violation(key, f"is no termination reason{nearest(key, (*_BY_NAME, _ALL))}")
        return None
    policy = policy_of(reason)
    if refusal := _not_to_be_retried(policy):
        section.violation(key, refusal)
        return None
    one = section.section(key, ("max", "backoff_s", "mutate"))
    limit = one.whole("max", policy.budget_with_change or policy.budget, at_least=UNLIMITED, at_most=_MAX_RETRIES)
    steps = mutate(one, reason, declared)
    _check_change(one, policy, limit, bool(steps), declared)
    backoff_s = one.number("backoff_s", 0.0, low=0.0, high=86_400.0) if one.has("backoff_s") else None
    return RetryOverride(reason=reason, max=limit, backoff_seconds=backoff_s, mutate=steps)


def _not_to_be_retried(policy: ReasonPolicy) -> str:
    if policy.domain is FailureDomain.DATA:
        return "bad data is never retried; leave it out, and register a snapshot that is right"
    if policy.exhausted is NextMove.EVALUATE or policy.reason in _NEVER:
        return "is not a failure that a retry could mend; leave it out"
    return ""


def _check_change(one: Fields, policy: ReasonPolicy, limit: int, named: bool, declared: Declared) -> None:
    """Where a retry needs a change, one must be possible."""
    if limit == 0 and one.has("mutate"):
        one.violation("mutate", "has nothing to change: max is 0; leave one of them out")
    if policy.budget_with_change == 0 or limit == 0 or (one.has("mutate") and named):
        return
    reason = policy.reason
    steps = LADDERS.get(reason, ())
    if not steps or reason in ON_REQUEST:
        one.violation("max", f"a retry needs {policy.must_change}, which only a person can bring about; leave it out")
    elif all(lacks(step, declared) for step in steps):
        needed = "; or ".join(lacks(step, declared) for step in steps)
        one.violation("max", f"the same shape would fail again, and nothing may change: {needed}")
