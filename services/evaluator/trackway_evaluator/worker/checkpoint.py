"""The committed checkpoint under test."""

from __future__ import annotations

from trackway_common.checkpoint.layout import CheckpointName
from trackway_common.checkpoint.manifest import Manifest, load_manifest
from trackway_common.events import CheckpointRef
from trackway_common.object_store.port import ObjectStore


def manifest_of(store: ObjectStore, checkpoint: CheckpointRef) -> Manifest:
    """The manifest that the checkpoint was committed with; raises as ``load_manifest`` does."""
    name = CheckpointName(step=checkpoint.step, epoch=checkpoint.epoch, nonce=checkpoint.nonce)
    return load_manifest(store, checkpoint.run_id, name, checkpoint.manifest_digest)
