"""The spec's own words on retries: per reason, and the general ceiling."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.events import NextMove, RetryOverride, TerminationReason
from trackway_common.fields import Fields, nearest
from trackway_common.reasons import GENERAL_CEILING, UNLIMITED, policy_of

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


def retries(fields: Fields) -> Retries:
    """Read `retry`."""
    section = fields.section("retry")
    found = [_override(section, key) for key in section.names() if key != _ALL]
    every = section.section(_ALL, ("ceiling",))
    ceiling = every.whole("ceiling", GENERAL_CEILING, at_least=1, at_most=_MAX_CEILING)
    return Retries(overrides=tuple(one for one in found if one is not None), ceiling=ceiling)


def _override(section: Fields, key: str) -> RetryOverride | None:
    reason = _BY_NAME.get(key.lower())
    if reason is None:
        section.violation(key, f"is no termination reason{nearest(key, (*_BY_NAME, _ALL))}")
        return None
    one = section.section(key, ("max", "backoff_s", "mutate"))
    if one.has("mutate"):
        one.violation("mutate", "changing the shape between attempts is not available yet; leave it out")
    policy = policy_of(reason)
    if policy.exhausted is NextMove.EVALUATE or reason in _NEVER:
        section.violation(key, "is not a failure that a retry could mend; leave it out")
        return None
    limit = one.whole("max", policy.budget, at_least=UNLIMITED, at_most=_MAX_RETRIES)
    if policy.budget_with_change > 0 and limit != 0:
        one.violation("max", f"the same shape would fail again; a retry needs {policy.must_change}, not available yet")
    backoff_s = one.number("backoff_s", 0.0, low=0.0, high=86_400.0) if one.has("backoff_s") else None
    return RetryOverride(reason=reason, max=limit, backoff_seconds=backoff_s)
