"""The model under test: built by the user's function, with the weights of a committed checkpoint."""

from __future__ import annotations

import json

import safetensors.torch
import torch
from trackway_common.checkpoint.directory import LAYOUT as DIRECTORY_LAYOUT
from trackway_common.checkpoint.files import read_file
from trackway_common.checkpoint.layout import checkpoint_prefix
from trackway_common.errors import CommandRejected
from trackway_common.events import CheckpointRef
from trackway_common.object_store.port import ObjectStore

from trackway_evaluator.worker.checkpoint import manifest_of
from trackway_evaluator.worker.user_code import CONFIG_INVALID, load_function

STATE = "trackway"
"""Member of a shard's metadata: JSON that says which tensor is what (written by ``trackway.training``)."""


def load_model(
    store: ObjectStore, checkpoint: CheckpointRef, reference: str, hyperparameters_json: str
) -> torch.nn.Module:
    """Build the model and load its weights, every byte checked; in evaluation mode, on the device there is.

    Raises:
        CommandRejected: no such function, or weights that are damaged or fit another model.
    """
    if not reference:
        message = "the run spec names no evaluation.model; write module:function that builds it"
        raise CommandRejected(message, reason=CONFIG_INVALID)
    build = load_function(reference)
    model = build(json.loads(hyperparameters_json or "{}"))
    if not isinstance(model, torch.nn.Module):
        raise CommandRejected(f"{reference} gave a {type(model).__name__}, no torch.nn.Module", reason=CONFIG_INVALID)
    weights = load_weights(store, checkpoint)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise CommandRejected(f"step {checkpoint.step} holds another model: {error}", reason=CONFIG_INVALID) from error
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return model.to(device).eval()


def load_weights(store: ObjectStore, checkpoint: CheckpointRef) -> dict[str, torch.Tensor]:
    """The model's tensors by the names of its ``state_dict``, every byte checked.

    Raises:
        CommandRejected: the checkpoint is damaged, or holds no model.
    """
    manifest = manifest_of(store, checkpoint)
    prefix = checkpoint_prefix(manifest.run_id, manifest.name)
    # A folder that another trainer wrote holds its model under the model's own names, all of it.
    read = safetensors.torch.load if manifest.layout == DIRECTORY_LAYOUT else _session_weights
    weights: dict[str, torch.Tensor] = {}
    for record in manifest.files:
        if record.path.endswith(".safetensors"):
            weights |= read(bytes(read_file(store, prefix, record)))
    if not weights:
        raise CommandRejected(f"the checkpoint of step {checkpoint.step} holds no model", reason=CONFIG_INVALID)
    return weights


def _session_weights(shard: bytes) -> dict[str, torch.Tensor]:
    """The model in a rank's shard; every rank but the first has none."""
    header = json.loads(shard[8 : 8 + int.from_bytes(shard[:8], "little")])
    state = json.loads(header.get("__metadata__", {}).get(STATE, "{}"))
    places = {name: place["$tensor"] for name, place in state.get("model", {}).items()}
    if not places:
        return {}
    tensors = safetensors.torch.load(shard)
    return {name: tensors[place] for name, place in places.items()}
