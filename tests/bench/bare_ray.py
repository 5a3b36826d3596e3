"""The peer: bare Ray actors that do the tests' training, as one would write them without an orchestrator."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path
from types import ModuleType

STEPS = 3


class Rank:
    """One rank: joins the group, builds the model, trains a few steps."""

    def address(self) -> tuple[str, int]:
        """An address for the rendezvous."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return "127.0.0.1", probe.getsockname()[1]

    def train(self, rank: int, world_size: int, host: str, port: int, code: str, data: list[str]) -> float:
        """Train and return the wall-clock time at which the first step was finished."""
        os.environ |= {"MASTER_ADDR": host, "MASTER_PORT": str(port), "TRACKWAY_ATTEMPT": "1"}
        sys.path.insert(0, code)
        import torch
        import train
        from torch.nn.parallel import DistributedDataParallel

        torch.set_num_threads(1)
        torch.distributed.init_process_group("gloo", rank=rank, world_size=world_size)
        inputs, targets = train.samples([Path(name) for name in data])
        torch.manual_seed(7)
        model = DistributedDataParallel(train.build({"width": 16}))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        first = 0.0
        for step in range(STEPS):
            train.train_step(model, optimizer, inputs, targets, list(range(8 * step, 8 * step + 8)))
            first = first or time.time()
        torch.distributed.destroy_process_group()
        return first


def connect(address: str, token: Path) -> None:
    """Join the stack's own Ray as a second driver."""
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    }
    ray = _ray()
    ray.init(address=address, _node_ip_address="127.0.0.1", namespace="bench", log_to_driver=False)


def disconnect() -> None:
    """Leave Ray."""
    _ray().shutdown()


def seconds_to_first_step(code: Path, data: list[Path]) -> float:
    """Start two actors, train, and return the seconds until a rank had done its first step: what Trackway records."""
    ray = _ray()
    began = time.time()
    actor = ray.remote(num_cpus=1)(Rank)
    ranks = [actor.remote() for _ in range(2)]
    host, port = ray.get(ranks[0].address.remote())
    files = [str(path) for path in data]
    firsts = ray.get([rank.train.remote(i, 2, host, port, str(code), files) for i, rank in enumerate(ranks)])
    for rank in ranks:
        ray.kill(rank)
    return min(firsts) - began


def _ray() -> ModuleType:
    # It reads its settings when it is imported, so not before they are set.
    import ray

    return ray
