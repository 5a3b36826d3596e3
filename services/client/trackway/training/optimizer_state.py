"""Puts an optimizer's state back bit for bit."""

from __future__ import annotations

from typing import Any

import torch


def load_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load the state and then undo what torch converts on the way.

    ``Optimizer.load_state_dict`` casts float state to the parameter's type: an fp32 moment of a bf16 parameter would
    lose half its bits.
    """
    optimizer.load_state_dict(state)
    saved = [number for group in state["param_groups"] for number in group["params"]]
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for number, parameter in zip(saved, parameters, strict=True):
        for key, value in state["state"].get(number, {}).items():
            if isinstance(value, torch.Tensor):
                # A copy: what was read is a view of the whole file's buffer.
                optimizer.state[parameter][key] = value.clone()
