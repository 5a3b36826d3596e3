"""Accuracy and log loss of ``model(input_B…) -> logits_BC``."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from trackway_evaluator.worker.sample import Row, Sample, required
from trackway_evaluator.worker.scorers.tensors import device_of, stacked


class Classification:
    """Samples have `input`, a tensor or array, and `target`, the index of the right class."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model

    def score(self, samples: Sequence[Sample]) -> list[Row]:
        with torch.inference_mode():
            logits_BC = self._model(stacked(samples, "input").to(device_of(self._model))).float().cpu()
            log_p_BC = torch.log_softmax(logits_BC, dim=-1)
        return [_row(sample, log_p_C) for sample, log_p_C in zip(samples, log_p_BC, strict=True)]


def _row(sample: Sample, log_p_C: torch.Tensor) -> Row:
    target = int(required(sample, "target"))
    if not 0 <= target < len(log_p_C):
        return Row(
            id=sample.id,
            metrics={},
            slices=sample.slices,
            error=f"class {target} of {len(log_p_C)}",
            target=str(target),
        )
    log_loss = -float(log_p_C[target])
    if not torch.isfinite(log_p_C).all():
        return Row(id=sample.id, metrics={}, slices=sample.slices, error="no finite logits", target=str(target))
    predicted = int(log_p_C.argmax())
    return Row(
        id=sample.id,
        metrics={"accuracy": float(predicted == target), "log_loss": log_loss},
        slices=sample.slices,
        failed=predicted != target,
        output=str(predicted),
        target=str(target),
    )
