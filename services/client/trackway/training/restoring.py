"""Reads a committed checkpoint back, every byte checked while it is read."""

from __future__ import annotations

import json
from typing import Any

import torch
from trackway_common.checkpoint.files import read_file as read_checked
from trackway_common.checkpoint.layout import checkpoint_prefix
from trackway_common.checkpoint.rank_part import shard_path
from trackway_common.errors import CommandRejected

from trackway.training.errors import CheckpointCorrupt, CheckpointIncompatible
from trackway.training.keeper import ResumeSource
from trackway.training.state_tree import unflatten
from trackway.training.tensor_file import read_file

STATE = "trackway"
"""Member of a shard's metadata: the state's JSON."""


def read_shard(source: ResumeSource, rank: int, device: torch.device) -> dict[str, Any]:
    """The nested state that a rank saved; tensors are views of one buffer until they are copied.

    Raises:
        CheckpointCorrupt: the bytes are not those that were committed.
        CheckpointIncompatible: it was not written by a session.
    """
    manifest = source.manifest
    record = next((file for file in manifest.files if file.path == shard_path(rank)), None)
    if record is None:
        raise CheckpointIncompatible(f"the checkpoint has no {shard_path(rank)}: a session did not write it")
    try:
        data = read_checked(source.store, checkpoint_prefix(manifest.run_id, manifest.name), record)
    except CommandRejected as error:
        raise CheckpointCorrupt(error.message) from error
    tensors, metadata = read_file(data)
    if STATE not in metadata:
        raise CheckpointIncompatible(f"{shard_path(rank)} holds tensors but no state: a session did not write it")
    try:
        state: dict[str, Any] = unflatten(json.loads(metadata[STATE]), tensors, device)
    except (KeyError, ValueError) as error:
        raise CheckpointCorrupt(f"{shard_path(rank)}: its state names what is not there: {error}") from error
    return state
