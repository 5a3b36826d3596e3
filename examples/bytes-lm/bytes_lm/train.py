"""Trains the model: under Trackway by `train submit`, or by hand on a folder of Python files.

python -m bytes_lm.train FOLDER
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import trackway.training as tw
import yaml
from torch.nn import functional

from bytes_lm.data import batch, training_bytes, window_count
from bytes_lm.model import build

RUN_SPEC = Path(__file__).parents[1] / "run.yaml"


def main(folder: str | None = None) -> None:
    """Train to the last step, with a checkpoint every few."""
    with tw.session(**by_hand(folder)) if folder else tw.session() as s:
        train(s, s.config)


def train(s: tw.Session, config: Mapping[str, Any]) -> None:
    """The loop; every rank runs it on its share of each batch."""
    context, steps = config["context"], config["steps"]
    text_N = training_bytes(s.dataset("stdlib").files("train"))
    model = build(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["learning_rate"], weight_decay=config["weight_decay"])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, warmup_then_cosine(config["warmup"], steps))
    passes = config["accumulation"]
    windows = config["batch_size"] * passes
    cursor = tw.DataCursor(seed=s.seed, dataset_len=window_count(text_N, context), batch_size=windows)
    model = s.prepare(model=model, optimizer=optimizer, lr_scheduler=schedule, cursor=cursor)

    for step in range(s.restore() + 1, steps + 1):
        began = time.perf_counter()
        indices, loss = next(cursor), torch.zeros(())
        optimizer.zero_grad()
        for part in split(indices, passes):
            inputs_BT, targets_BT = (tensor.to(s.device) for tensor in batch(text_N, part, context))
            mean = functional.cross_entropy(model(inputs_BT).flatten(0, 1), targets_BT.flatten())
            share = mean * len(part) / len(indices)
            share.backward()
            loss += share.detach().cpu()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config["clip"])
        optimizer.step()
        schedule.step()
        bytes_per_second = windows * context / (time.perf_counter() - began)
        s.report(
            step,
            loss=loss,
            bits_per_byte=loss / math.log(2),
            grad_norm=norm,
            learning_rate=schedule.get_last_lr()[0],
            bytes_per_second=bytes_per_second,
        )
        if step % config["checkpoint_every"] == 0 or step == steps:
            s.checkpoint(step)


def split(indices: list[int], passes: int) -> list[list[int]]:
    """A rank's share of a batch in so many passes, as even as they come; none is empty."""
    edges = [len(indices) * number // passes for number in range(passes + 1)]
    return [indices[first:last] for first, last in pairwise(edges) if first < last]


def warmup_then_cosine(warmup: int, steps: int) -> Callable[[int], float]:
    """Share of the learning rate after so many steps: up in a line, then down to a tenth."""

    def share(step: int) -> float:
        if step < warmup:
            return (step + 1) / warmup
        done = min(1.0, (step - warmup) / max(1, steps - warmup))
        return 0.1 + 0.45 * (1 + math.cos(math.pi * done))

    return share


def by_hand(folder: str) -> dict[str, Any]:
    """What Trackway would give: the run spec's hyperparameters and a folder as the dataset."""
    spec = yaml.safe_load(RUN_SPEC.read_text(encoding="utf-8"))
    return {
        "config": spec["hyperparameters"],
        "seed": spec["seed"],
        "datasets": {"stdlib": folder},
        "splits": ["heldout=0.1"],
    }


if __name__ == "__main__":
    main(sys.argv[1])
