"""The reason table is whole, and says of every reason what a person and the scheduler need."""

from __future__ import annotations

import pytest
from trackway_common.events import FailureDomain, NextMove, TerminationReason
from trackway_common.reason_hints import HINTS
from trackway_common.reasons import POLICIES, UNLIMITED, Counting, policy_of

REASONS = [reason for reason in TerminationReason if reason is not TerminationReason.UNSPECIFIED]


def test_every_reason_has_a_policy_and_a_hint():
    assert set(POLICIES) == set(HINTS) == set(REASONS)


@pytest.mark.parametrize("reason", REASONS)
def test_a_policy_is_consistent(reason):
    policy = policy_of(reason)
    assert policy.reason is reason
    assert policy.domain is not FailureDomain.UNSPECIFIED
    assert policy.budget >= UNLIMITED
    assert 0 <= policy.backoff.first_s <= policy.backoff.last_s
    assert policy.exhausted in {NextMove.STOP, NextMove.HOLD, NextMove.EVALUATE}
    assert policy.hint.endswith(".")
    if policy.budget_with_change:
        assert policy.budget == 0
        assert policy.must_change


def test_only_what_ended_by_itself_is_evaluated():
    evaluated = {reason for reason, policy in POLICIES.items() if policy.exhausted is NextMove.EVALUATE}
    assert evaluated == {TerminationReason.COMPLETED, TerminationReason.EARLY_STOPPED}


def test_budgets_over_a_runs_life():
    over_life = {reason for reason, policy in POLICIES.items() if policy.counting is Counting.LIFETIME}
    assert over_life == {
        TerminationReason.CHECKPOINT_CORRUPT,
        TerminationReason.NUMERIC_DIVERGENCE,
        TerminationReason.PLATFORM_ERROR,
    }


def test_a_reason_of_a_newer_schema_is_unknown():
    assert policy_of(TerminationReason.UNSPECIFIED).reason is TerminationReason.UNKNOWN
