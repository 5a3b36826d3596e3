"""States as protobuf messages."""

from __future__ import annotations

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp
from trackway_common.codec import to_message
from trackway_common.events import CheckpointRef, DatasetRegistered, PoolObserved, RunPhase
from trackway_proto.v1 import dataset_service_pb2, pool_service_pb2, run_service_pb2
from trackway_proto.v1.vocabulary_pb2 import RunPhase as WirePhase

from trackway_scheduler.domain.catalogue import Capacity
from trackway_scheduler.domain.datasets import snapshot_name
from trackway_scheduler.domain.ledgers import LedgerEntry, ledgers
from trackway_scheduler.domain.names import run_name
from trackway_scheduler.domain.placement import Wait
from trackway_scheduler.domain.state import RunState


def run_message(run: RunState, last_committed: CheckpointRef | None, wait: Wait | None) -> run_service_pb2.Run:
    """A run; while it is queued its reason is why it waits."""
    message = run_service_pb2.Run(
        name=run_name(run.project, run.run_id),
        run_id=run.run_id,
        phase=wire_phase(run.phase),
        attempt=run.attempt,
        reason=wait.token.value if wait else run.reason,
        message=wait.message if wait else run.message,
        evaluation_id=run.evaluation.evaluation_id if run.evaluation else "",
        decisions=[to_message(decided) for decided in run.decisions],
        violations=[to_message(violation) for violation in run.violations],
    )
    if run.spec is not None:
        message.spec.CopyFrom(to_message(run.spec))
        message.ledgers.extend(_ledger_message(one) for one in ledgers(run, run.spec))
    if run.shape is not None:
        message.shape.CopyFrom(to_message(run.shape))
    if run.submitted_at is not None:
        message.submitted_at.CopyFrom(timestamp(run.submitted_at))
    if run.ended_at is not None:
        message.ended_at.CopyFrom(timestamp(run.ended_at))
    if last_committed is not None:
        message.last_committed.CopyFrom(to_message(last_committed))
    return message


def _ledger_message(entry: LedgerEntry) -> run_service_pb2.LedgerState:
    return run_service_pb2.LedgerState(ledger=entry.ledger, spent=entry.spent, budget=entry.budget, counts=entry.counts)


def dataset_message(snapshot: DatasetRegistered, manifest: bytes = b"") -> dataset_service_pb2.Dataset:
    """A snapshot, with its manifest where it is asked for."""
    return dataset_service_pb2.Dataset(
        name=snapshot_name(snapshot),
        dataset=snapshot.name,
        manifest_digest=snapshot.manifest_digest,
        files=snapshot.files,
        size_bytes=snapshot.size_bytes,
        splits=snapshot.splits,
        registered_at=timestamp(snapshot.registered_at),
        manifest=manifest,
    )


def pool_message(pool: PoolObserved, *, reachable: bool, free: Capacity, running: int) -> pool_service_pb2.Pool:
    """A pool and what is free of it."""
    return pool_service_pb2.Pool(
        name=f"pools/{pool.pool}",
        agent_id=pool.agent_id,
        reachable=reachable,
        cpus=pool.cpus,
        cpus_free=max(0.0, free.cpus),
        accelerators=pool.accelerators,
        accelerators_free=max(0, free.accelerators),
        memory_bytes=pool.memory_bytes,
        offers=[to_message(offer) for offer in pool.offers],
        python_version=pool.python_version,
        environment_digest=pool.environment_digest,
        running_attempts=running,
    )


def wire_phase(phase: RunPhase) -> WirePhase.ValueType:
    """The phase as its protobuf number."""
    return WirePhase.Value(f"RUN_PHASE_{phase.value}")


def phase_of(number: int) -> RunPhase:
    """The phase of a protobuf number; one that this build doesn't know is UNSPECIFIED."""
    value = WirePhase.DESCRIPTOR.values_by_number.get(number)
    return RunPhase(value.name.removeprefix("RUN_PHASE_")) if value else RunPhase.UNSPECIFIED


def timestamp(moment: datetime) -> Timestamp:
    """The moment as a protobuf timestamp."""
    stamp = Timestamp()
    stamp.FromDatetime(moment)
    return stamp
