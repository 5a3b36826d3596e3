"""Samples' fields as tensors where the model is."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from trackway_common.errors import CommandRejected

from trackway_evaluator.worker.sample import Sample, required


def device_of(model: torch.nn.Module) -> torch.device:
    """Where the model's parameters are; the CPU for one without any."""
    return next((p.device for p in model.parameters()), torch.device("cpu"))


def stacked(samples: Sequence[Sample], key: str) -> torch.Tensor:
    """One field of all samples, in a new first dimension.

    Raises:
        CommandRejected: a field is no tensor or array, or their shapes differ.
    """
    try:
        return torch.stack([torch.as_tensor(required(sample, key)) for sample in samples])
    except (TypeError, ValueError, RuntimeError) as error:
        names = f"{samples[0].id!r} to {samples[-1].id!r}"
        raise CommandRejected(f"{key!r} of samples {names} make no batch: {error}", reason="BAD_SAMPLE") from error
