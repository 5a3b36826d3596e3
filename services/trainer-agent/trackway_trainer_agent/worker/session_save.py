"""A checkpoint that the SDK captured in the staging memory."""

from __future__ import annotations

import mmap
import os
import time
from dataclasses import dataclass

from trackway_common.checkpoint.layout import CheckpointName, receipt_path
from trackway_common.checkpoint.rank_part import RankPart, RunInputs, write_rank_part
from trackway_common.checkpoint.records import CursorRecord
from trackway_common.object_store.port import ObjectStore
from trackway_common.rank_protocol.messages import Captured

from trackway_trainer_agent.worker.journal import now_ms
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import CheckpointPersisted


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSave:
    """Writes this rank's shard from the staging memory, then its receipt."""

    store: ObjectStore
    spec: RankSpec
    staging: int
    """Descriptor of the staging memory; nobody writes to it until the save is over."""
    captured: Captured

    @property
    def step(self) -> int:
        return self.captured.step

    @property
    def nonce(self) -> str:
        return self.captured.nonce

    def write(self) -> CheckpointPersisted:
        begun_s = time.monotonic()
        part = RankPart(
            name=CheckpointName(step=self.step, epoch=self.spec.epoch, nonce=self.nonce),
            rank=self.spec.rank,
            items=self.captured.items,
            cursor=cursor_record(self.captured),
        )
        # Unmapped when the last view of it is gone: closing it here would hide an error whose frames still hold one.
        memory = mmap.mmap(self.staging, os.fstat(self.staging).st_size, prot=mmap.PROT_READ)
        write_rank_part(self.store, run_inputs(self.spec), part, memoryview(memory)[: self.captured.size_bytes])
        return CheckpointPersisted(
            step=self.step,
            nonce=self.nonce,
            receipt_path=f"{part.name.path}/{receipt_path(self.spec.rank)}",
            size_bytes=self.captured.size_bytes,
            seconds=time.monotonic() - begun_s,
            world_size=self.spec.world_size,
            samples_consumed=part.cursor.samples_consumed if part.cursor else 0,
            metrics=tuple(self.captured.metrics.items()),
            kind="session",
            at_ms=now_ms(),
        )


def run_inputs(spec: RankSpec) -> RunInputs:
    """What receipts of this run repeat."""
    return RunInputs(
        run_id=spec.run_id,
        world_size=spec.world_size,
        config_digest=spec.config_digest,
        code_digest=spec.code_archive_digest or "",
        dataset_digests=tuple(dataset.manifest_digest for dataset in spec.datasets),
    )


def cursor_record(captured: Captured) -> CursorRecord | None:
    """The cursor as the SDK sent it.

    Raises:
        ValueError: its numbers are no cursor's.
    """
    if captured.cursor_seed is None:
        return None
    return CursorRecord(
        seed=captured.cursor_seed, data_epoch=captured.data_epoch, samples_consumed=captured.samples_consumed
    )
