"""Train the digits model on every rank of a run, or by hand: `python -m digits.train`."""

from __future__ import annotations

import torch
import trackway.training as tw

from digits.data import load
from digits.model import build


def main() -> None:
    with tw.session() as s:
        pictures, labels = load(s.dataset("digits").files("train"))
        torch.manual_seed(s.seed)
        model = build(s.config)
        optimizer = torch.optim.AdamW(model.parameters(), lr=s.config["lr"])
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=s.config["steps"])
        cursor = tw.DataCursor(seed=s.seed, dataset_len=len(pictures), batch_size=s.config["batch_size"])
        model = s.prepare(model=model, optimizer=optimizer, lr_scheduler=schedule, cursor=cursor)
        for step in range(s.restore() + 1, s.config["steps"] + 1):
            batch = next(cursor)
            logits = model(pictures[batch])
            loss = torch.nn.functional.cross_entropy(logits, labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            s.report(step, loss=loss.item(), lr=schedule.get_last_lr()[0])
            if step % s.config["checkpoint_every"] == 0 or step == s.config["steps"]:
                s.checkpoint(step)


if __name__ == "__main__":
    main()
