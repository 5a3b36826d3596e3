"""What a rank's actor makes of its run's own rules."""

from __future__ import annotations

import pytest
from trackway_common.events import FailureRule
from trackway_common.events import TerminationReason as Reason
from trackway_trainer_agent.worker.failure_rules import RuleWatch

RULES = (
    FailureRule(log="mount .* lost", reason=Reason.STORAGE_TRANSIENT),
    FailureRule(exit_code=42, reason=Reason.DATA_CORRUPT),
    FailureRule(log="bad row", reason=Reason.DATA_SCHEMA_DRIFT),
)


@pytest.mark.parametrize(
    ("printed", "exit_code", "rule"),
    [
        ((), 42, ("failure_rules[1]", "exit code 42")),
        (("mount a lost",), 42, ("failure_rules[0]", "mount a lost")),
        (("bad row 7", "bad row 8"), 1, ("failure_rules[2]", "bad row 7")),
        (("bad row 7",), 42, ("failure_rules[1]", "exit code 42")),
        (("bad row 7", "mount b lost"), None, ("failure_rules[0]", "mount b lost")),
        (("mount a lost",), 0, None),
        (("all is well",), 1, None),
    ],
)
def test_the_first_rule_of_the_spec_counts(printed: tuple[str, ...], exit_code: int | None, rule: object):
    watch = RuleWatch(RULES)
    for line in printed:
        watch.line(line)
    found = watch.at_exit(exit_code)
    assert (None if found is None else (found.rule, found.matched)) == rule
