"""Datasets, evaluation packs and pools: names with immutable or observed content behind them."""

from __future__ import annotations

from dataclasses import replace

from trackway_common.events import DatasetRegistered, EvaluationPackRegistered, PoolObserved

from trackway_scheduler.domain.commands import ObservePool, RegisterDataset, RegisterPack
from trackway_scheduler.domain.state import DatasetState, PackState, PoolState


def register_dataset(state: DatasetState, command: RegisterDataset) -> tuple[DatasetRegistered, ...]:
    """A manifest that is registered already changes nothing."""
    if any(snapshot.manifest_digest == command.manifest_digest for snapshot in state.snapshots):
        return ()
    registered = DatasetRegistered(
        name=state.name,
        manifest_digest=command.manifest_digest,
        project=state.project,
        files=command.files,
        size_bytes=command.size_bytes,
        splits=command.splits,
        registered_at=command.at,
    )
    return (registered,)


def register_pack(state: PackState, command: RegisterPack) -> tuple[EvaluationPackRegistered, ...]:
    """The newest version again changes nothing; an older one becomes the newest."""
    if state.versions and state.versions[-1].digest == command.digest:
        return ()
    return (EvaluationPackRegistered(name=state.name, digest=command.digest, registered_at=command.at),)


def observe_pool(state: PoolState, command: ObservePool) -> tuple[PoolObserved, ...]:
    """Only a difference is a fact."""
    observed = PoolObserved(
        pool=state.pool,
        agent_id=command.agent_id,
        cluster_id=command.cluster_id,
        cpus=command.cpus,
        accelerators=command.accelerators,
        memory_bytes=command.memory_bytes,
        environment_digest=command.environment_digest,
        python_version=command.python_version,
        offers=command.offers,
        observed_at=command.at,
    )
    before = state.observed
    if before is not None and replace(before, observed_at=command.at) == observed:
        return ()
    return (observed,)
