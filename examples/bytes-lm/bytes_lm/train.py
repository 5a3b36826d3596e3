"""Train the byte model on every rank of a run."""

from __future__ import annotations

import torch
import trackway.training as tw
from torch.nn import functional

from bytes_lm.data import corpus, count_windows, window
from bytes_lm.model import build


def main() -> None:
    with tw.session() as s:
        config = s.config
        text = corpus(s.dataset("stdlib").files("train"))
        torch.manual_seed(s.seed)
        model = build(config)
        optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"], betas=(0.9, 0.95), weight_decay=0.1)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=config["lr"], total_steps=config["steps"] + 1)
        cursor = tw.DataCursor(
            seed=s.seed, dataset_len=count_windows(text, config["context"]), batch_size=config["batch_size"]
        )
        model = s.prepare(model=model, optimizer=optimizer, lr_scheduler=schedule, cursor=cursor)
        for step in range(s.restore() + 1, config["steps"] + 1):
            pairs = [window(text, number, config["context"]) for number in next(cursor)]
            inputs_BT, targets_BT = (torch.stack(part).to(s.device) for part in zip(*pairs, strict=True))
            logits_BTV = model(inputs_BT)
            loss = functional.cross_entropy(logits_BTV.flatten(0, 1), targets_BT.flatten())
            optimizer.zero_grad()
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), config["clip"])
            optimizer.step()
            schedule.step()
            s.report(step, loss=loss.item(), gradient_norm=norm.item(), lr=schedule.get_last_lr()[0])
            if step % config["checkpoint_every"] == 0 or step == config["steps"]:
                s.checkpoint(step)


if __name__ == "__main__":
    main()
