"""Nested state (what ``state_dict()`` returns) as JSON beside named tensors, exactly; no pickle.

Keeps None, bool, int, float (bit for bit), str, bytes, list, tuple, dict with any such keys, tensors, numpy arrays
and numpy numbers. Anything else is refused with its place named: a checkpoint that loses a part is none.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import torch

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Tensors: TypeAlias = dict[str, torch.Tensor]


def flatten(state: object, name: str, tensors: Tensors) -> Json:
    """JSON of the state; its tensors are added to ``tensors`` under names that begin with ``name``.

    Raises:
        TypeError: something in it has no exact form.
    """
    match state:
        case None | bool() | str():
            return state
        case np.generic():  # Before float and int: numpy's are subclasses of them.
            return {"$scalar": _added(torch.from_numpy(np.array([state])), name, tensors)}
        case int():
            return state
        case float():
            return state if math.isfinite(state) else {"$float": repr(state)}
        case torch.Tensor():
            return {"$tensor": _added(_plain(state, name), name, tensors), "on": state.device.type}
        case np.ndarray():
            return {"$array": _added(torch.from_numpy(np.ascontiguousarray(state)), name, tensors)}
        case bytes():
            return {"$bytes": base64.b64encode(state).decode("ascii")}
        case list():
            return [flatten(item, f"{name}/{place}", tensors) for place, item in enumerate(state)]
        case tuple():
            return {"$tuple": [flatten(item, f"{name}/{place}", tensors) for place, item in enumerate(state)]}
        case Mapping():
            return _flatten_mapping(state, name, tensors)
    raise TypeError(f"{name} holds a {type(state).__name__}, which a checkpoint can't keep; leave it out of the state")


def unflatten(tree: Json, tensors: Mapping[str, torch.Tensor], device: torch.device) -> Any:
    """The state again; tensors that were not on the CPU go to ``device``, the others stay where they are.

    Raises:
        KeyError: a tensor is missing, or the tree was written by something else.
    """
    if isinstance(tree, list):
        return [unflatten(item, tensors, device) for item in tree]
    if not isinstance(tree, dict):
        return tree
    tag = next(iter(tree), "")
    if not tag.startswith("$"):
        return {key: unflatten(item, tensors, device) for key, item in tree.items()}
    return _special(tag, tree, tensors, device)


def _special(tag: str, tree: dict[str, Json], tensors: Mapping[str, torch.Tensor], device: torch.device) -> Any:
    content: Any = tree[tag]
    match tag:
        case "$tensor":
            return tensors[content] if tree["on"] == "cpu" else tensors[content].to(device)
        case "$array":
            return tensors[content].numpy().copy()
        case "$scalar":
            return tensors[content].numpy()[0]
        case "$float":
            return float(content)
        case "$bytes":
            return base64.b64decode(content)
        case "$tuple":
            return tuple(unflatten(item, tensors, device) for item in content)
        case "$dict":
            pairs = ((unflatten(key, tensors, device), unflatten(item, tensors, device)) for key, item in content)
            return dict(pairs)
    raise KeyError(f"{tag} is not known here")


def _flatten_mapping(state: Mapping[Any, Any], name: str, tensors: Tensors) -> Json:
    if all(isinstance(key, str) and not key.startswith("$") for key in state):
        return {key: flatten(item, f"{name}/{key}", tensors) for key, item in state.items()}
    pairs: list[Json] = []
    for key, item in state.items():
        pairs.append([flatten(key, f"{name}/key", tensors), flatten(item, f"{name}/{key}", tensors)])
    return {"$dict": pairs}


def _plain(tensor: torch.Tensor, name: str) -> torch.Tensor:
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
        raise TypeError(f"{name} is a {tensor.layout} tensor on {tensor.device}; only plain dense tensors are kept")
    return tensor.detach()


def _added(tensor: torch.Tensor, name: str, tensors: Tensors) -> str:
    unique, number = name, 1
    while unique in tensors:
        number += 1
        unique = f"{name}~{number}"
    tensors[unique] = tensor
    return unique
