"""A plain DDP script: nothing of Trackway in it, and it would run under torchrun as well.

It saves nothing, so after a failure its next attempt begins at step 0; `trackway explain` says so.
Fits a noisy sine with a small network; prints its loss once in ten steps.
"""

import argparse
import math
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    arguments = parse_arguments()
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")

    torch.manual_seed(arguments.seed)
    model = DistributedDataParallel(build_model().to(device))
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.lr)
    x, y = noisy_sine(arguments.seed)

    generator = torch.Generator().manual_seed(arguments.seed)
    for step in range(1, arguments.steps + 1):
        # The same shuffle everywhere; each rank takes every world_size-th sample of the batch.
        batch = torch.randperm(len(x), generator=generator)[: arguments.batch][rank::world_size]
        loss = torch.nn.functional.mse_loss(model(x[batch].to(device)), y[batch].to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step} loss {loss.item():.5f}", flush=True)
    dist.destroy_process_group()


def build_model() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(1, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)
    )


def noisy_sine(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed + 1)
    x = torch.rand(4096, 1, generator=generator) * 2 * math.pi
    return x, x.sin() + 0.1 * torch.randn(4096, 1, generator=generator)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=256, help="samples of one step, over all ranks")
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
