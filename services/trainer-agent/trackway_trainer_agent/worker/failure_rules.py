"""Watches for what the run's own rules mean: exit codes, and lines that the trainer prints."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from trackway_common.events import FailureRule
from trackway_common.patterns import Pattern

from trackway_trainer_agent.worker.journal import now_ms
from trackway_trainer_agent.worker.records import RuleMatched

MATCHED_KEPT = 500
"""Characters."""


class RuleWatch:
    """Of one trainer. The first rule of the spec that matched counts, whenever it did. Safe from several threads."""

    def __init__(self, rules: Sequence[FailureRule]) -> None:
        self._rules = tuple(rules)
        self._patterns = tuple((n, Pattern(rule.log)) for n, rule in enumerate(rules) if rule.log is not None)
        self._lock = threading.Lock()
        self._matched: dict[int, RuleMatched] = {}

    def line(self, text: str) -> None:
        """Look at a printed line."""
        for number, pattern in self._patterns:
            if number not in self._matched and pattern.found_in(text):
                with self._lock:
                    self._matched.setdefault(number, self._match(number, text[:MATCHED_KEPT]))

    def at_exit(self, exit_code: int | None) -> RuleMatched | None:
        """What counts, now that the trainer has ended; a clean end means nothing else."""
        if exit_code == 0:
            return None
        for number, rule in enumerate(self._rules):
            if rule.exit_code is not None and rule.exit_code == exit_code:
                return self._match(number, f"exit code {exit_code}")
            if number in self._matched:
                return self._matched[number]
        return None

    def _match(self, number: int, matched: str) -> RuleMatched:
        reason = self._rules[number].reason.value
        return RuleMatched(reason=reason, rule=f"failure_rules[{number}]", matched=matched, at_ms=now_ms())
