"""Bits that ``model(tokens_BT) -> logits_BTV`` needs per byte of the text behind the tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from trackway_evaluator.worker.sample import Row, Sample, required
from trackway_evaluator.worker.scorers.tensors import device_of, stacked

IGNORED = -100
"""Target that counts for nothing, as in torch's cross entropy."""


class BitsPerByte:
    """Samples have `input` and `target` token ids of one length T, and `bytes`, the size of the target's text."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model

    def score(self, samples: Sequence[Sample]) -> list[Row]:
        device = device_of(self._model)
        target_BT = stacked(samples, "target").to(device)
        with torch.inference_mode():
            logits_BTV = self._model(stacked(samples, "input").to(device)).float()
            nats_BT = torch.nn.functional.cross_entropy(
                logits_BTV.transpose(1, 2), target_BT, ignore_index=IGNORED, reduction="none"
            )
        bits_B = (nats_BT.double().sum(dim=1) / math.log(2)).tolist()
        return [_row(sample, bits) for sample, bits in zip(samples, bits_B, strict=True)]


def _row(sample: Sample, bits: float) -> Row:
    size_bytes = int(required(sample, "bytes"))
    if size_bytes <= 0 or not math.isfinite(bits):
        return Row(id=sample.id, metrics={}, slices=sample.slices, error=f"{bits} bits for {size_bytes} bytes")
    return Row(
        id=sample.id,
        metrics={"bits_per_byte": bits / size_bytes},
        weight=float(size_bytes),
        slices=sample.slices,
        output=f"{bits:.3f} bits",
        target=f"{size_bytes} bytes",
    )
