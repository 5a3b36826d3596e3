"""A run whose checkpoints a test makes, through the protocol that ranks and the checkpointer use."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from trackway_common.checkpoint.commit import CommitRequest, commit_checkpoint
from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.entries import LogEntry
from trackway_common.checkpoint.layout import CheckpointName, new_nonce
from trackway_common.checkpoint.records import CursorRecord
from trackway_common.checkpoint.save import RankSave, StagedFile, write_rank
from trackway_common.events import CheckpointRef
from trackway_common.object_store import ObjectStore

CONFIG = "sha256:" + "c" * 64
DATASET = "sha256:" + "d" * 64


class CheckpointedRun:
    """Saves and commits at a clock that only the test moves."""

    def __init__(self, store: ObjectStore, run_id: str = "run-1", *, world_size: int = 2) -> None:
        self.store = store
        self.run_id = run_id
        self.world_size = world_size
        self.now_ms = 1_000_000

    def log(self, writer: str = "test") -> CommitLog:
        """A commit log of this run that has read nothing yet."""
        return CommitLog(self.store, self.run_id, writer=writer, now_ms=lambda: self.now_ms)

    def rank_save(self, name: CheckpointName, rank: int) -> RankSave:
        """What the rank's receipt should say."""
        return RankSave(
            run_id=self.run_id,
            name=name,
            rank=rank,
            world_size=self.world_size,
            config_digest=CONFIG,
            dataset_digests=(DATASET,),
            items_planned=1,
            layout="ddp",
            cursor=CursorRecord(seed="7", data_epoch=0, samples_consumed=name.step * 32),
        )

    def write(self, name: CheckpointName) -> None:
        """Write every rank's part of the checkpoint."""
        for rank in range(self.world_size):
            write_rank(self.store, self.rank_save(name, rank), [shard(name, rank)], reserve_bytes=0)

    def request(self, name: CheckpointName, parent: CheckpointRef | None = None) -> CommitRequest:
        """The request to commit it."""
        return CommitRequest(
            run_id=self.run_id,
            name=name,
            world_size=self.world_size,
            config_digest=CONFIG,
            dataset_digests=(DATASET,),
            parent=parent,
        )

    def save(self, step: int, epoch: int = 1, *, parent: CheckpointRef | None = None) -> LogEntry:
        """Write and commit a checkpoint of that step."""
        name = CheckpointName(step=step, epoch=epoch, nonce=new_nonce())
        self.write(name)
        return commit_checkpoint(self.log(), replace(self.request(name), parent=parent))


def shard(name: CheckpointName, rank: int, size_bytes: int = 1000) -> StagedFile:
    """A rank's data, different for every rank and checkpoint."""
    seed = hashlib.sha256(f"{name}/{rank}".encode()).digest()
    data = (seed * (size_bytes // len(seed) + 1))[:size_bytes]
    return StagedFile(path=f"shard/r{rank:05d}-0.bin", chunks=(data[:300], data[300:]), size_bytes=size_bytes)
