"""Completions sampled from ``model(tokens_BT) -> logits_BTV``, compared with the text that followed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import TypeAlias

import torch
from trackway_common.errors import CommandRejected
from trackway_common.evaluation_pack import Decoding

from trackway_evaluator.worker.sample import Row, Sample, required
from trackway_evaluator.worker.scorers.tensors import device_of

Decode: TypeAlias = Callable[[Sequence[int]], str]


class Completion:
    """Samples have `prompt` and `target`, both sequences of token ids."""

    def __init__(self, model: torch.nn.Module, decoding: Decoding, context: int, decode: Decode | None) -> None:
        self._model = model
        self._decoding = decoding
        self._context = context
        self._decode = decode or (lambda tokens: json.dumps([*tokens]))

    def score(self, samples: Sequence[Sample]) -> list[Row]:
        rows: dict[str, Row] = {}
        for group in _by_length(samples):
            outputs = self._complete([_prompt(sample) for sample in group], [sample.id for sample in group])
            rows |= {sample.id: self._row(sample, output) for sample, output in zip(group, outputs, strict=True)}
        return [rows[sample.id] for sample in samples]

    def _complete(self, prompts: list[list[int]], ids: list[str]) -> list[list[int] | None]:
        """Tokens that follow prompts of one length, up to the first stop token; None where logits were not finite."""
        tokens_BT = torch.tensor(prompts, device=device_of(self._model))
        generators = [_generator(self._decoding.seed, sample_id) for sample_id in ids]
        finite_B = torch.ones(len(prompts), dtype=torch.bool)
        with torch.inference_mode():
            for _ in range(self._decoding.max_tokens):
                window_BT = tokens_BT[:, -self._context :] if self._context else tokens_BT
                logits_BV = self._model(window_BT)[:, -1].float().cpu()
                finite_B &= logits_BV.isfinite().all(dim=1)
                logits_BV = logits_BV.nan_to_num()
                next_B = torch.stack([self._pick(row_V, g) for row_V, g in zip(logits_BV, generators, strict=True)])
                tokens_BT = torch.cat([tokens_BT, next_B[:, None].to(tokens_BT.device)], dim=1)
        stops = set(self._decoding.stop_tokens)
        generated: list[list[int]] = tokens_BT[:, len(prompts[0]) :].tolist()
        completions = [list(takewhile(lambda token: token not in stops, row)) for row in generated]
        return [tokens if ok else None for tokens, ok in zip(completions, finite_B.tolist(), strict=True)]

    def _pick(self, logits_V: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        if self._decoding.temperature == 0.0:
            return logits_V.argmax()
        p_V = torch.softmax(logits_V / self._decoding.temperature, dim=-1)
        sorted_V, order_V = p_V.sort(descending=True, stable=True)
        # The first token always stays: what lies before it sums to zero.
        outside_V = sorted_V.cumsum(dim=-1) - sorted_V > self._decoding.top_p
        kept_V = sorted_V.masked_fill(outside_V, 0.0)
        return order_V[torch.multinomial(kept_V, 1, generator=generator)[0]]

    def _row(self, sample: Sample, output: list[int] | None) -> Row:
        if output is None:
            return Row(id=sample.id, metrics={}, slices=sample.slices, error="no finite logits")
        target = _ids(sample, "target")
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(output, target, strict=False)))
        return Row(
            id=sample.id,
            metrics={
                "exact_match": float(output == target),
                "matching_prefix": same / len(target) if target else float(not output),
                "output_length": float(len(output)),
            },
            slices=sample.slices,
            failed=output != target,
            prompt=self._decode(_ids(sample, "prompt")),
            output=self._decode(output),
            target=self._decode(target),
        )


def _by_length(samples: Sequence[Sample]) -> list[list[Sample]]:
    groups: dict[int, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(len(_prompt(sample)), []).append(sample)
    return list(groups.values())


def _generator(seed: int, sample_id: str) -> torch.Generator:
    """A sample's own stream of random numbers, so that batches and restarts change nothing."""
    key = hashlib.sha256(f"{seed}\0{sample_id}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(key[:7], "big"))


def _prompt(sample: Sample) -> list[int]:
    prompt = _ids(sample, "prompt")
    if not prompt:
        raise CommandRejected(
            f"sample {sample.id!r} has an empty prompt; a completion begins after a token", reason="BAD_SAMPLE"
        )
    return prompt


def _ids(sample: Sample, key: str) -> list[int]:
    return [int(token) for token in required(sample, key)]
