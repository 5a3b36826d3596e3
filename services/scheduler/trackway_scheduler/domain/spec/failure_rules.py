"""The user's own meaning of exit codes and printed lines."""

from __future__ import annotations

from trackway_common.events import FailureRule, TerminationReason
from trackway_common.fields import Fields, nearest
from trackway_common.patterns import Pattern, PatternInvalid

MOST_RULES = 50
_PLATFORM_ONLY = frozenset(
    {
        TerminationReason.UNSPECIFIED,
        TerminationReason.COMPLETED,
        TerminationReason.EARLY_STOPPED,
        TerminationReason.CANCELLED_BY_USER,
        TerminationReason.CANCELLED_BY_ADMIN,
        TerminationReason.DEADLINE_EXCEEDED,
        TerminationReason.PREEMPTED_SCHEDULER,
        TerminationReason.WALLTIME,
        TerminationReason.ADMISSION_INFEASIBLE,
        TerminationReason.CAPACITY_TIMEOUT,
        TerminationReason.AGENT_LOST,
        TerminationReason.PLATFORM_ERROR,
        TerminationReason.BUDGET_EXHAUSTED,
        TerminationReason.QUOTA_REVOKED,
    }
)
"""Reasons that only the platform can know."""
_BY_NAME = {reason.value: reason for reason in TerminationReason if reason not in _PLATFORM_ONLY}


def failure_rules(fields: Fields) -> tuple[FailureRule, ...]:
    """Read `failure_rules`; the first rule that matches counts."""
    sections = fields.sections("failure_rules", ("exit_code", "log", "reason"))
    if len(sections) > MOST_RULES:
        fields.violation("failure_rules", f"has {len(sections)} rules; at most {MOST_RULES}")
    found: dict[int | str, int] = {}
    rules = []
    for number, section in enumerate(sections[:MOST_RULES]):
        rule = _rule(section)
        rules.append(rule)
        key = rule.exit_code if rule.exit_code is not None else rule.log
        if key is None:
            continue
        if key in found:
            first, kind = found[key], "exit_code" if rule.exit_code is not None else "log"
            says = "the same" if rules[first].reason is rule.reason else f"{rules[first].reason}, a contradiction"
            section.violation(kind, f"{key!r} stands in failure_rules[{first}] already, with {says}; leave one out")
        found.setdefault(key, number)
    return tuple(rules)


def _rule(section: Fields) -> FailureRule:
    if section.has("exit_code") == section.has("log"):
        has = "both" if section.has("log") else "neither"
        section.violation("exit_code", f"and log: the rule has {has}; write exactly one of them")
    return FailureRule(
        exit_code=section.whole("exit_code", 1, at_least=1, at_most=255) if section.has("exit_code") else None,
        log=_expression(section) if section.has("log") else None,
        reason=_reason(section),
    )


def _expression(section: Fields) -> str:
    written = section.text("log")
    if not written:
        return written
    try:
        pattern = Pattern(written)
    except PatternInvalid as error:
        section.violation("log", f"{written[:80]!r} is no RE2 expression (no look-around, no back-references): {error}")
        return written
    if pattern.found_in(""):
        section.violation("log", f"{written[:80]!r} matches every line; say what is special about the one meant")
    return written


def _reason(section: Fields) -> TerminationReason:
    written = section.text("reason").upper()
    reason = _BY_NAME.get(written)
    if reason is not None:
        return reason
    if written in TerminationReason.__members__:
        section.violation("reason", f"{written} is for the platform to say; map to a failure of the program")
    elif written:
        section.violation("reason", f"{written!r} is no termination reason{nearest(written, _BY_NAME)}")
    return TerminationReason.UNSPECIFIED
