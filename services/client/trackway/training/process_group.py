"""The ranks together: joins them by torchrun's contract, and answers what all must agree on."""

from __future__ import annotations

import torch
from torch import distributed

from trackway.training.surroundings import Ranks


class ProcessGroup:
    """All ranks of the run; one rank alone needs no group and gets none."""

    def __init__(self, ranks: Ranks, device: torch.device) -> None:
        """Join; returns once every rank has. A group that the program made before is used as it is."""
        self.ranks = ranks
        self._ours = ranks.world_size > 1 and not distributed.is_initialized()
        self._control: distributed.ProcessGroup | None = None
        if self._ours:
            distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", init_method="env://")
        if ranks.world_size > 1:
            # Questions among ranks are about numbers on the host: not a matter for the device's streams.
            self._control = distributed.new_group(backend="gloo")

    def any(self, value: bool) -> bool:
        """Whether it is true on one rank at least; the same answer on every rank. Waits for all."""
        if self._control is None:
            return value
        votes = torch.tensor([int(value)])
        distributed.all_reduce(votes, op=distributed.ReduceOp.MAX, group=self._control)
        return bool(votes.item())

    def from_first(self, value: str) -> str:
        """Rank 0's text, on every rank. Waits for all."""
        if self._control is None:
            return value
        texts = [value]
        distributed.broadcast_object_list(texts, src=0, group=self._control)
        return texts[0]

    def leave(self) -> None:
        """Leave together: a rank that left early would take the rendezvous away from the others."""
        if self._control is not None:
            distributed.barrier(group=self._control)
        if self._ours:
            distributed.destroy_process_group()
