"""`failure_rules` of a run spec."""

from __future__ import annotations

import pytest
from trackway_common.events import FailureRule
from trackway_common.events import TerminationReason as Reason

from tests.unit.scheduler.specs import SPEC
from tests.unit.scheduler.specs import read as draft


def read(rules: str) -> tuple[tuple[FailureRule, ...], dict[str, str]]:
    found = draft(f"{SPEC}failure_rules: {rules}\n")
    return found.spec.failure_rules, {one.field: one.description for one in found.violations}


def test_rules_are_read_in_their_order():
    rules, violations = read(
        "[{exit_code: 42, reason: data_corrupt}, {log: 'mount .* lost', reason: STORAGE_TRANSIENT}]"
    )
    assert violations == {}
    assert rules == (
        FailureRule(exit_code=42, reason=Reason.DATA_CORRUPT),
        FailureRule(log="mount .* lost", reason=Reason.STORAGE_TRANSIENT),
    )


@pytest.mark.parametrize(
    ("rules", "field", "says"),
    [
        ("[{exit_code: 42, reason: BAD_LUCK}]", "failure_rules[0].reason", "no termination reason"),
        ("[{exit_code: 42, reason: DATA_CORUPT}]", "failure_rules[0].reason", "did you mean 'DATA_CORRUPT'"),
        ("[{exit_code: 42, reason: CANCELLED_BY_USER}]", "failure_rules[0].reason", "for the platform to say"),
        ("[{exit_code: 42}]", "failure_rules[0].reason", "required"),
        ("[{exit_code: 0, reason: UNKNOWN}]", "failure_rules[0].exit_code", "at least 1"),
        ("[{exit_code: 256, reason: UNKNOWN}]", "failure_rules[0].exit_code", "at most 255"),
        ("[{exit_code: 1, log: x, reason: UNKNOWN}]", "failure_rules[0].exit_code", "exactly one"),
        ("[{reason: UNKNOWN}]", "failure_rules[0].exit_code", "exactly one"),
        ("[{log: '(', reason: UNKNOWN}]", "failure_rules[0].log", "no RE2 expression"),
        (r"[{log: '(a)\1', reason: UNKNOWN}]", "failure_rules[0].log", "no RE2 expression"),
        ("[{log: '.*', reason: UNKNOWN}]", "failure_rules[0].log", "every line"),
        ("[{log: '', reason: UNKNOWN}]", "failure_rules[0].log", "must be text"),
        (
            "[{exit_code: 3, reason: DATA_CORRUPT}, {exit_code: 3, reason: STORAGE_FULL}]",
            "failure_rules[1].exit_code",
            "failure_rules[0] already, with DATA_CORRUPT, a contradiction",
        ),
        (
            "[{log: lost, reason: DATA_CORRUPT}, {log: lost, reason: DATA_CORRUPT}]",
            "failure_rules[1].log",
            "with the same",
        ),
        ("[{exit_code: 3, reason: UNKNOWN, when: x}]", "failure_rules[0].when", "not a field"),
        ("{exit_code: 3}", "failure_rules", "must be a list"),
        (
            "[" + ", ".join(f"{{exit_code: {n}, reason: UNKNOWN}}" for n in range(1, 60)) + "]",
            "failure_rules",
            "at most 50",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_field(rules: str, field: str, says: str):
    _, violations = read(rules)
    assert list(violations) == [field]
    assert says in violations[field]
