"""Where the runbook of a reason lies in the source tree."""

from __future__ import annotations

from trackway_common.events import NextMove, TerminationReason
from trackway_common.reasons import UNLIMITED, Counting, ReasonPolicy

FOLDER = "docs/runbooks"
RUN_TOKENS = ("GATE_FAILED", "EVALUATION_EXHAUSTED", "NOTHING_TO_EVALUATE")
"""Why a run failed or is held though its training finished."""
WITHOUT = frozenset(
    {
        TerminationReason.UNSPECIFIED,
        TerminationReason.COMPLETED,
        TerminationReason.EARLY_STOPPED,
        TerminationReason.CANCELLED_BY_ADMIN,
        TerminationReason.PREEMPTED_SCHEDULER,
        TerminationReason.ADMISSION_INFEASIBLE,
        TerminationReason.BUDGET_EXHAUSTED,
        TerminationReason.QUOTA_REVOKED,
    }
)
"""Reasons after which nobody has anything to do, and those that no part of this build ends an attempt with."""


def runbook_path(token: str) -> str:
    """``docs/runbooks/host_oom.md``; empty for what has no runbook.

    Args:
        token: a termination reason, or why a run is where it is.
    """
    known = {*RUN_TOKENS, *(reason.value for reason in TerminationReason if reason not in WITHOUT)}
    return f"{FOLDER}/{token.lower()}.md" if token in known else ""


def budget_line(policy: ReasonPolicy) -> str:
    """One line on who acts and what a retry may cost by default, as each runbook's head says it."""
    parts = [f"Domain: {policy.domain.lower()}", f"retries by default: {_retries(policy)}"]
    if policy.budget or policy.budget_with_change:
        counted = "without a newly committed checkpoint" if policy.counting is Counting.NO_PROGRESS else "over its life"
        parts.append(f"counted {counted}")
    if policy.backoff.last_s:
        first, last = policy.backoff.first_s, policy.backoff.last_s
        parts.append(f"backoff {first:g} s" if first == last else f"backoff {first:g} to {last:g} s")
    if policy.exhausted is NextMove.HOLD:
        parts.append("then the run is held")
    return "; ".join(parts) + "."


def _retries(policy: ReasonPolicy) -> str:
    if policy.budget == UNLIMITED:
        return "no limit"
    same = str(policy.budget) if policy.budget else "none"
    return f"{same} in the same shape, {policy.budget_with_change} with a change" if policy.budget_with_change else same
