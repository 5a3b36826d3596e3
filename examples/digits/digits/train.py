"""Trains the digits model: under Trackway by `train submit`, or by hand on the folder that make_data.py wrote.

python -m digits.train FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import trackway.training as tw
import yaml
from torch.nn import functional

from digits.data import load
from digits.model import build

RUN_SPEC = Path(__file__).parents[1] / "run.yaml"


def main(folder: str | None = None) -> None:
    """Train to the last step, with a checkpoint every few."""
    with tw.session(**by_hand(folder)) if folder else tw.session() as s:
        train(s, s.config)


def train(s: tw.Session, config: Mapping[str, Any]) -> None:
    """The loop; every rank runs it on its share of each batch."""
    images_NP, labels_N = load(s.dataset("digits").files("train"))
    model = build(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["learning_rate"])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=config["steps"])
    passes = config["accumulation"]
    cursor = tw.DataCursor(seed=s.seed, dataset_len=len(labels_N), batch_size=config["batch_size"] * passes)
    model = s.prepare(model=model, optimizer=optimizer, lr_scheduler=schedule, cursor=cursor)

    for step in range(s.restore() + 1, config["steps"] + 1):
        indices = next(cursor)
        loss, right = torch.zeros(()), torch.zeros(())
        optimizer.zero_grad()
        for part in split(indices, passes):
            image_BP, label_B = images_NP[part].to(s.device), labels_N[part].to(s.device)
            logits_BC = model(image_BP)
            share = functional.cross_entropy(logits_BC, label_B) * len(part) / len(indices)
            share.backward()
            loss += share.detach().cpu()
            right += (logits_BC.argmax(dim=1) == label_B).sum().cpu()
        optimizer.step()
        schedule.step()
        think(config["extra_work"])
        s.report(step, loss=loss, accuracy=right / len(indices))
        if step % config["checkpoint_every"] == 0 or step == config["steps"]:
            s.checkpoint(step)


def split(indices: list[int], passes: int) -> list[list[int]]:
    """A rank's share of a batch in so many passes, as even as they come; none is empty."""
    edges = [len(indices) * number // passes for number in range(passes + 1)]
    return [indices[first:last] for first, last in pairwise(edges) if first < last]


def think(rounds: int) -> None:
    """Compute to no end, so that a step takes as long as one of a larger model: about 1 ms a round."""
    work = torch.ones(192, 192)
    for _ in range(rounds):
        work = torch.tanh(work @ work)


def by_hand(folder: str) -> dict[str, Any]:
    """What Trackway would give: the run spec's hyperparameters and a folder as the dataset."""
    spec = yaml.safe_load(RUN_SPEC.read_text(encoding="utf-8"))
    return {
        "config": spec["hyperparameters"],
        "seed": spec["seed"],
        "datasets": {"digits": folder},
        "splits": ["test=0.2"],
    }


if __name__ == "__main__":
    main(sys.argv[1])
