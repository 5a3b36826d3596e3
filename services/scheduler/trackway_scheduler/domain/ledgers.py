"""What a run has spent of its budgets so far, for those who ask."""

from __future__ import annotations

from dataclasses import dataclass

from trackway_common.events import RunSpec

from trackway_scheduler.domain.budgets import (
    CEILING,
    LIFE,
    attempts_of,
    attempts_spent,
    budget_of,
    ceiling_of,
    span_of,
    spent_of,
    under_ceiling,
)
from trackway_scheduler.domain.state import RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """One budget."""

    ledger: str
    spent: int
    budget: int
    """-1 is unlimited."""
    counts: str
    """What it is counted over."""


def ledgers(run: RunState, spec: RunSpec) -> tuple[LedgerEntry, ...]:
    """The budgets that retries have used, then the run-wide ones."""
    reasons = dict.fromkeys(run.ledger.lifetime)
    used = tuple(
        LedgerEntry(
            ledger=reason.value,
            spent=spent_of(run.ledger, reason),
            budget=budget_of(spec, reason),
            counts=f"retries {span_of(reason)}",
        )
        for reason in reasons
    )
    ceiling = LedgerEntry(
        ledger=CEILING,
        spent=under_ceiling(run.ledger),
        budget=ceiling_of(spec),
        counts="retries in a row without a newly committed checkpoint",
    )
    life = LedgerEntry(
        ledger=LIFE,
        spent=attempts_spent(run.ledger, run.attempt),
        budget=attempts_of(spec),
        counts="attempts over the run's life",
    )
    return (*used, ceiling, life)
