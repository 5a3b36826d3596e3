"""A small multilayer perceptron."""

from __future__ import annotations

import torch

CLASSES = 10
PIXELS = 64


def build(config: dict) -> torch.nn.Module:
    """The model that the hyperparameters describe, with freshly drawn weights."""
    hidden = config["hidden"]
    return torch.nn.Sequential(
        torch.nn.Linear(PIXELS, hidden),
        torch.nn.ReLU(),
        torch.nn.Dropout(config["dropout"]),
        torch.nn.Linear(hidden, hidden),
        torch.nn.ReLU(),
        torch.nn.Linear(hidden, CLASSES),
    )
