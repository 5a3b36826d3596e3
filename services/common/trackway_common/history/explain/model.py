"""An explanation: what a reader is told, section by section."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trackway_common.events import Violation
from trackway_common.history.explain.sections import (
    AttemptLine,
    CheckpointSection,
    Command,
    Cost,
    Decision,
    EvaluationLine,
    EvidenceSection,
    Ran,
    SecondLook,
    TimelineRow,
    Verdict,
    Waiting,
    Where,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Everything a reader needs; sections that have nothing to say are None or empty."""

    name: str
    run_id: str
    attempt: int | None
    project: str
    model_family: str
    as_of: datetime
    verdict: Verdict
    judged_again: SecondLook | None
    violations: tuple[Violation, ...]
    waiting: Waiting | None
    attempts: tuple[AttemptLine, ...]
    ran: Ran | None
    where: Where | None
    timeline: tuple[TimelineRow, ...]
    evidence: EvidenceSection | None
    checkpoints: CheckpointSection | None
    cost: Cost | None
    decision: Decision | None
    evaluations: tuple[EvaluationLine, ...]
    evaluation_note: str
    advice: tuple[str, ...]
    runbook: str
    """Path in the source tree; empty where none is needed."""
    commands: tuple[Command, ...]
    unknown_facts: int
