"""Programs with torch and without the SDK: one rank, or ranks that meet by torchrun's contract."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from given import KIND, MEETING, RANK, await_word, ready, wait_for_the_end
from torch.distributed.elastic.multiprocessing.errors import record

SQUATTER = """
import socket, sys, time
server = socket.create_server(("", int(sys.argv[1])))
print("here", flush=True)
time.sleep(60)
"""


def device_oom() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB")


def wrapped_oom() -> None:
    try:
        device_oom()
    except torch.OutOfMemoryError as error:
        raise RuntimeError("training step failed") from error


@record
def recorded() -> None:
    raise ValueError("bad learning rate: -1.0")


def mismatch() -> None:
    torch.nn.Linear(4, 8).load_state_dict(torch.nn.Linear(4, 16).state_dict())


def anomaly() -> None:
    with torch.autograd.detect_anomaly(check_nan=True):
        weight = torch.zeros(1, requires_grad=True)
        (weight.sqrt() * 0).sum().backward()


class Hungry(torch.utils.data.Dataset[int]):
    """Takes memory in the loader's worker."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        (MEETING / "worker.pid").write_text(str(os.getpid()))
        await_word("go")
        held = []
        while True:
            held.append(bytearray(os.urandom(4096) * 1024))


def hungry_worker() -> None:
    loader = torch.utils.data.DataLoader(Hungry(), num_workers=1)
    ready()
    next(iter(loader))


def joined(timeout_s: float = 60.0) -> None:
    """Join, and meet once: every connection stands."""
    dist.init_process_group("gloo", timeout=timedelta(seconds=timeout_s))
    meet()


def meet() -> None:
    dist.all_reduce(torch.ones(1))


def meets_for_ever() -> None:
    joined()
    ready()
    while not (MEETING / "stop").exists():
        meet()
        time.sleep(0.01)


def oom_among_others() -> None:
    joined()
    if RANK == 1:
        device_oom()
    meet()


def disk_full_among_others() -> None:
    joined()
    if RANK == 1:
        with (MEETING / "disk/big").open("wb", buffering=0) as file:
            for _ in range(64):
                file.write(bytes(1 << 20))
    meet()


def cut_connections() -> None:
    """End what this process sends on every TCP connection, as a broken path would; it lives on."""
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if not str(entry.readlink()).startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(entry.name))) as connection:
                if connection.family in {socket.AF_INET, socket.AF_INET6} and connection.type == socket.SOCK_STREAM:
                    connection.shutdown(socket.SHUT_WR)
        except OSError:
            continue  # Gone since it was listed, or not connected.


def cut() -> None:
    joined()
    cut_connections()
    meet()


def cut_then_raise() -> None:
    joined()
    if RANK == 1:
        cut_connections()
        await_word("died-0")
        raise ValueError("bad shape")
    try:
        meet()
    finally:
        (MEETING / "died-0").touch()


def never_meets() -> None:
    joined(timeout_s=2.0)
    if RANK == 1:
        wait_for_the_end()
    meet()


def port_taken() -> None:
    if RANK == 0:
        port = os.environ["MASTER_PORT"]
        squatter = subprocess.Popen([sys.executable, "-c", SQUATTER, port], stdout=subprocess.PIPE)
        assert squatter.stdout is not None
        squatter.stdout.readline()
    else:
        wait_for_the_end()
    joined()


def nobody_joins() -> None:
    if RANK == 1:
        wait_for_the_end()
    joined(timeout_s=2.0)


def nobody_listens() -> None:
    if RANK == 0:
        wait_for_the_end()
    joined(timeout_s=2.0)


KINDS: dict[str, Callable[[], None]] = {
    "device-oom": device_oom,
    "wrapped-oom": wrapped_oom,
    "recorded": recorded,
    "mismatch": mismatch,
    "anomaly": anomaly,
    "hungry-worker": hungry_worker,
    "meet": meets_for_ever,
    "oom-among-others": oom_among_others,
    "disk-full-among-others": disk_full_among_others,
    "cut": cut,
    "cut-then-raise": cut_then_raise,
    "never-meet": never_meets,
    "port-taken": port_taken,
    "nobody-joins": nobody_joins,
    "nobody-listens": nobody_listens,
}


def main() -> None:
    """Do what the configuration says."""
    KINDS[KIND]()


if __name__ == "__main__":
    main()
