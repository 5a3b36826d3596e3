"""A small training with the SDK that fails in one place."""

from __future__ import annotations

import queue
import threading
import time

import torch
import trackway.training as tw
from given import ATTEMPT, CONFIG, KIND, ready, wait_for_the_end

FAILS_AT = 3
STEPS = 8


class Unsavable:
    """Raises when a checkpoint asks for its state, once it was told to."""

    refuses = False

    def state_dict(self) -> dict[str, object]:
        if self.refuses:
            raise ValueError("this state can't be taken now")
        return {}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Never called."""


class Broken(torch.utils.data.Dataset[int]):
    """Raises in the loader's worker."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        raise ValueError(f"row {index} has no label")


def next_batch(loader: queue.Queue[int]) -> int:
    """Nobody puts anything."""
    return loader.get()


def dead_lock() -> None:
    """Each thread holds the lock that the other one wants."""
    left, right = threading.Lock(), threading.Lock()
    both = threading.Barrier(2)

    def other() -> None:
        with right:
            both.wait()
            with left:
                pass

    threading.Thread(target=other, daemon=True).start()
    with left:
        both.wait()
        with right:
            pass


def compute_for_ever() -> None:
    total = 0
    while True:
        total += 1


def fail(session: tw.Session) -> None:
    """At step 3; what is not named here fails elsewhere."""
    match KIND:
        case "raise" if session.rank == 1:
            raise ValueError("bad shape at step 3")
        case "device-oom":
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        case "worker-raises":
            next(iter(torch.utils.data.DataLoader(Broken(), num_workers=1)))
        case "loader-hangs":
            next_batch(queue.Queue())
        case "deadlock":
            dead_lock()
        case "infinite-loop":
            compute_for_ever()
        case "miss" if session.rank == 1:
            time.sleep(300)
        case "wait":
            ready()


def build() -> torch.nn.Module:
    if KIND == "start":
        raise ValueError("no such activation: relou")
    width = 32 if KIND == "wider" and ATTEMPT > 1 else 16
    return torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))


def main() -> None:
    with tw.session() as s:
        for dataset in s.datasets.values():
            for file in dataset.files():
                file.read_bytes()
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        unsavable = Unsavable()
        wrapped = s.prepare(model=model, optimizer=optimizer, unsavable=unsavable)
        step = s.restore()
        while step < STEPS or KIND in {"wait", "nan"}:
            step += 1
            if step == FAILS_AT:
                fail(s)
            loss = wrapped(torch.ones(2, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            s.report(step, loss=float("nan") if KIND == "nan" and step >= FAILS_AT else loss)
            unsavable.refuses = KIND == "save"
            if step == 2 and KIND in {"save", "keep", "wider"}:
                s.checkpoint(step)
            if KIND in {"keep", "wider"} and step == FAILS_AT and ATTEMPT == 1:
                wait_for_the_end()
            time.sleep(CONFIG.get("pause_s", 0.05))


if __name__ == "__main__":
    main()
