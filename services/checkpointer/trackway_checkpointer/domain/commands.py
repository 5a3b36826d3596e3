"""What a command of the log asks of the checkpoint library."""

from __future__ import annotations

from trackway_common.checkpoint.commit import CommitRequest
from trackway_common.checkpoint.layout import CheckpointName
from trackway_common.checkpoint.retention import KeepLast
from trackway_common.events import CommitCheckpoint


def commit_request(command: CommitCheckpoint) -> CommitRequest:
    """The commit that is asked for; raises ``CommandRejected`` when it names no checkpoint."""
    return CommitRequest(
        run_id=command.run_id,
        name=CheckpointName(step=command.step, epoch=command.epoch, nonce=command.nonce),
        world_size=command.world_size,
        config_digest=command.config_digest,
        dataset_digests=command.dataset_digests,
        parent=command.parent,
        metrics=command.metrics,
    )


def retention(command: CommitCheckpoint) -> KeepLast:
    """The run's retention policy, which comes with every commit."""
    return KeepLast(count=command.keep_last)
