"""The receipt of an attempt: everything a reader needs to account for it. No I/O."""

from __future__ import annotations

from datetime import datetime

from trackway_common.events import AttemptEnded, CheckpointRef

from trackway_trainer_agent.domain.attempt import AttemptState
from trackway_trainer_agent.domain.classify import Classification
from trackway_trainer_agent.shell.keeping import Kept
from trackway_trainer_agent.shell.plan import Assignment
from trackway_trainer_agent.shell.testimony import Testimony


def receipt(
    assignment: Assignment,
    state: AttemptState,
    told: Testimony,
    verdict: Classification,
    *,
    granted_at: datetime | None,
    ended_at: datetime,
    captures_in_flight: tuple[str, ...],
    last_committed: CheckpointRef | None,
    kept: Kept,
) -> AttemptEnded:
    """The attempt's terminal fact; without granted resources it cost nothing."""
    spec = assignment.spec
    began_at = state.started_at or granted_at
    held_s = max(0.0, (ended_at - began_at).total_seconds()) if began_at is not None else 0.0
    return AttemptEnded(
        run_id=assignment.run_id,
        attempt=assignment.attempt,
        epoch=assignment.placed.epoch,
        reason=verdict.reason,
        domain=verdict.domain,
        confidence=verdict.confidence,
        cause=verdict.cause,
        fingerprint=verdict.fingerprint,
        classifier_version=verdict.classifier_version,
        blamed_rank=verdict.blamed_rank,
        blamed_node=verdict.blamed_node,
        evidence=verdict.evidence,
        ranks=tuple(told.ends[rank] for rank in sorted(told.ends)),
        captures_in_flight=captures_in_flight,
        model_family=spec.model_family,
        project=spec.project,
        pool=assignment.placed.pool,
        accelerator_kind=spec.compute.accelerator_kind,
        accelerators=assignment.accelerators,
        gpu_seconds=assignment.accelerators * held_s,
        started_at=began_at or state.starting_at or ended_at,
        ended_at=ended_at,
        first_step=state.first_step or 0,
        last_step=told.last_step,
        resumed_from=state.resume,
        last_committed=last_committed,
        last_metrics=told.metrics,
        observations=kept.inline,
        observations_digest=kept.digest,
        world_size=assignment.world_size,
        phases=told.phases,
        last_progress_at=told.last_progress_at,
    )
