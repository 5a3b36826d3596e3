"""A small network over 8 × 8 images."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

PIXELS = 64
CLASSES = 10


def build(config: Mapping[str, int]) -> nn.Module:
    """The model of a run's hyperparameters: ``model(image_BP) -> logits_BC``."""
    width = int(config["width"])
    return nn.Sequential(nn.Linear(PIXELS, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, CLASSES))
