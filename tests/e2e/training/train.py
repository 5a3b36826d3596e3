"""A training for tests: small, deterministic, and able to fail on request.

Hyperparameters: steps, checkpoint_every, width, dropout, batch and passes of a step, work (extra matrix products
a step, for its length), fault {kind, step, rank, attempt}, stop_file (trains until that file exists), hold {step, file}
(waits before that step until that file exists) and step_log (rank 0 writes the monotonic time of each step there).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import torch
import trackway.training as tw


def build(config: dict) -> torch.nn.Module:
    """The model, from hyperparameters; dropout makes random state matter."""
    width, dropout = config["width"], config.get("dropout", 0.2)
    return torch.nn.Sequential(
        torch.nn.Linear(4, width), torch.nn.Tanh(), torch.nn.Dropout(dropout), torch.nn.Linear(width, 1)
    )


def samples(files, split: str = "train") -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs [n, 4] and targets [n, 1] from lines of five numbers."""
    rows = [[float(x) for x in line.split()] for file in files for line in file.read_text().splitlines()]
    table = torch.tensor(rows)
    return table[:, :4], table[:, 4:]


def fail(fault: dict, step: int, rank: int) -> None:
    """Do to this process what the fault says, when it is its turn."""
    attempt = int(os.environ["TRACKWAY_ATTEMPT"])
    if (fault["step"], fault["rank"]) != (step, rank) or attempt != fault.get("attempt", attempt):
        return
    match fault["kind"]:
        case "oom":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        case "raise":
            raise ValueError(f"bad shape at step {step}")
        case "exit":
            print("leaving early", file=sys.stderr, flush=True)
            sys.exit(fault.get("code", 3))
        case signal_name:
            os.kill(os.getpid(), getattr(signal, signal_name))


def wait_for(file: Path) -> None:
    """Stand still until the file exists: what is to happen to this process meets it here."""
    while not file.exists():
        time.sleep(0.02)


def main() -> None:
    with tw.session() as s:
        config = s.config
        inputs, targets = samples(s.dataset("numbers").files())
        torch.manual_seed(s.seed)
        model = build(config)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10, gamma=0.9)
        passes = config.get("passes", 1)
        cursor = tw.DataCursor(seed=s.seed, dataset_len=len(inputs), batch_size=config.get("batch", 8) * passes)
        model = s.prepare(model=model, optimizer=optimizer, lr_scheduler=schedule, cursor=cursor)
        step = s.restore()
        while not over(s, config, step):
            step += 1
            if "hold" in config and step == config["hold"]["step"]:
                wait_for(Path(config["hold"]["file"]))
            if "fault" in config:
                fail(config["fault"], step, s.rank)
            loss = train_step(model, optimizer, inputs, targets, next(cursor), passes)
            busy = torch.ones(256, 256)
            for _ in range(config.get("work", 0)):
                busy = busy @ busy / 256
            schedule.step()
            s.report(step, loss=loss)
            if "step_log" in config and s.rank == 0:
                with Path(config["step_log"]).open("a") as steps:
                    steps.write(f"{time.monotonic()}\n")
            if step % config["checkpoint_every"] == 0:
                s.checkpoint(step)


def train_step(model, optimizer, inputs, targets, indices, passes=1) -> float:
    optimizer.zero_grad()
    total = 0.0
    for number in range(passes):
        part = indices[len(indices) * number // passes : len(indices) * (number + 1) // passes]
        loss = torch.nn.functional.mse_loss(model(inputs[part]), targets[part]) * len(part) / len(indices)
        loss.backward()
        total += loss.item()
    optimizer.step()
    return total


def over(session, config: dict, step: int) -> bool:
    """Whether to stop: all ranks say the same."""
    if "stop_file" not in config:
        return step >= config["steps"]
    seen = torch.tensor([float(Path(config["stop_file"]).exists())])
    torch.distributed.all_reduce(seen)
    return bool(seen.item() > 0) and step % config["checkpoint_every"] == 0
