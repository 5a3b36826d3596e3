"""What a run orders, and what a try needs to carry it out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trackway_common.events import CheckpointRef, EvaluationPackRef, RunSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One FinalEvaluationOrdered, with the run's pinned inputs."""

    run_id: str
    order_id: str
    """Id of the commit that ordered it."""
    evaluation_id: str
    round: int
    """1-based among the orders of this evaluation: each may be carried out once."""
    pack: EvaluationPackRef
    checkpoint: CheckpointRef
    ordered_at: datetime
    spec: RunSpec
    traceparent: str
