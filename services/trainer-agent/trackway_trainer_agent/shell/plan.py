"""From the scheduler's placement and the run's spec to what each rank is told. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from trackway_common.checkpoint.layout import CheckpointName
from trackway_common.events import AttemptPlaced, CheckpointRef, RunSpec

from trackway_trainer_agent.domain.topology import number_ranks
from trackway_trainer_agent.gangs import Bundle, GangName, GangRequest
from trackway_trainer_agent.worker.rank_spec import DatasetInput, Patience, RankSpec, ResumeTarget
from trackway_trainer_agent.worker.records import RankDescription


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One attempt that this agent runs."""

    run_id: str
    placed: AttemptPlaced
    spec: RunSpec
    """As this attempt runs it: with what a retry or the placement changed."""
    submitted_at: datetime | None = None
    """When the run was submitted; its deadline may count from there."""
    causation_id: str = ""
    """Commit that placed it."""
    traceparent: str = ""

    @property
    def attempt(self) -> int:
        return self.placed.attempt

    @property
    def gang(self) -> GangName:
        return GangName(run_id=self.run_id, attempt=self.attempt)

    @property
    def world_size(self) -> int:
        return len(self.placed.ranks)

    @property
    def accelerators(self) -> int:
        """On CPU a rank's slot counts as one."""
        return sum(rank.accelerators for rank in self.placed.ranks) or self.world_size


def gang_request(assignment: Assignment, wait_s: float) -> GangRequest:
    """The resources that the scheduler granted."""
    ranks = sorted(assignment.placed.ranks, key=lambda rank: rank.rank)
    bundles = tuple(
        Bundle(cpus=rank.cpus, accelerators=rank.accelerators, memory_bytes=rank.memory_bytes) for rank in ranks
    )
    shape = assignment.placed.shape
    excluded = shape.excluded_nodes if shape is not None else ()
    return GangRequest(name=assignment.gang, bundles=bundles, wait_s=wait_s, excluded_nodes=excluded)


def rank_specs(
    assignment: Assignment,
    landed: Sequence[RankDescription],
    *,
    resume: CheckpointRef | None,
    store_url: str,
    attempt_token: str,
) -> tuple[RankSpec, ...]:
    """What each rank is told; equal but for the rank's own numbers."""
    spec = assignment.spec
    target = _resume_target(resume)
    memory_bytes = {rank.rank: rank.memory_bytes for rank in assignment.placed.ranks}
    return tuple(
        RankSpec(
            run_id=assignment.run_id,
            attempt=assignment.attempt,
            epoch=assignment.placed.epoch,
            attempt_token=attempt_token,
            rank=numbers.rank,
            world_size=len(landed),
            local_rank=numbers.local_rank,
            local_world_size=numbers.local_world_size,
            group_rank=numbers.group_rank,
            group_world_size=numbers.group_world_size,
            master_addr=landed[0].address,
            master_port=landed[0].free_port,
            entrypoint=spec.entrypoint,
            store_url=store_url,
            code_archive_digest=spec.code.archive_digest or None,
            hyperparameters_json=spec.hyperparameters_json,
            config_digest=spec.config_digest,
            seed=spec.seed,
            deterministic=spec.deterministic,
            datasets=_datasets(spec),
            resume=target,
            in_flight=spec.topology.checkpoint.in_flight,
            visible_devices=tuple(device for rank in numbers.neighbours for device in landed[rank].devices),
            patience=_patience(spec),
            memory_bytes=memory_bytes.get(numbers.rank, 0),
            failure_rules=spec.failure_rules,
            non_finite_loss=spec.non_finite_loss or "fail",
            traceparent=assignment.traceparent or None,
        )
        for numbers in number_ranks([rank.node for rank in landed])
    )


def checkpoint_path(checkpoint: CheckpointRef) -> str:
    """Folder of a checkpoint below its run's, as commit entries name it."""
    return CheckpointName(step=checkpoint.step, epoch=checkpoint.epoch, nonce=checkpoint.nonce).path


def _patience(spec: RunSpec) -> Patience:
    limits = spec.limits
    return Patience() if limits is None else Patience(stall_s=limits.stall_s, first_step_s=limits.first_step_s)


def _datasets(spec: RunSpec) -> tuple[DatasetInput, ...]:
    return tuple(
        DatasetInput(name=dataset.name, manifest_digest=dataset.manifest_digest, weight=dataset.weight)
        for dataset in spec.datasets
    )


def _resume_target(checkpoint: CheckpointRef | None) -> ResumeTarget | None:
    if checkpoint is None:
        return None
    return ResumeTarget(
        step=checkpoint.step,
        path=checkpoint_path(checkpoint),
        manifest_digest=checkpoint.manifest_digest,
        run_id=checkpoint.run_id,
    )
