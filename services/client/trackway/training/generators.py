"""States of the random number generators that training draws from: Python's, numpy's, torch's and the device's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from trackway.training.permutation import mixed


def seed_all(seed: int, *path: int) -> None:
    """Seed every generator from the run's seed and, on it, numbers such as rank or position."""
    derived = mixed(seed, *path)
    random.seed(derived)
    np.random.seed(derived % 2**32)
    torch.manual_seed(derived)  # Also every device's.


def capture_generators(device: torch.device) -> dict[str, Any]:
    """What the next draws depend on, as nested state."""
    state: dict[str, Any] = {
        "python": _python_state(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def restore_generators(state: dict[str, Any], device: torch.device) -> None:
    """Draw on from where the state was captured."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words.tolist()), gauss))
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


def _python_state() -> tuple[int, Any, float | None]:
    version, words, gauss = random.getstate()
    # An array: 625 numbers as JSON would be five times the size.
    return version, np.array(words, dtype=np.uint32), gauss
