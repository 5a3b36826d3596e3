"""Where a run stands in its data: a position in one global order, whatever the number of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from trackway.training.errors import CheckpointIncompatible
from trackway.training.permutation import mixed, shuffled
from trackway.training.phase_clock import Phase, PhaseClock


class DataCursor:
    """Hands out the indices of a dataset, shuffled anew in every pass, and knows how many were handed out.

    The order is a pure function of ``seed`` and ``dataset_len``: sample number *n* of the run is the same on any
    number of ranks, machines and restarts. Each batch is the next ``batch_size`` samples of it, split among the ranks
    into consecutive parts; where it does not divide, the first ranks get one more. Iterating never ends: the training
    loop counts steps.

        cursor = DataCursor(seed=s.seed, dataset_len=len(data), batch_size=64)
        s.prepare(model=…, optimizer=…, cursor=cursor)
        indices = next(cursor)        # this rank's share of the next 64
    """

    def __init__(self, *, seed: int, dataset_len: int, batch_size: int) -> None:
        """Stand at the beginning.

        Args:
            seed: of the order, 0 … 2^64 - 1.
            dataset_len: samples in the dataset.
            batch_size: samples of one step, over all ranks together.
        """
        if dataset_len < 1 or batch_size < 1 or not 0 <= seed < 2**64:
            raise ValueError(f"no order of {dataset_len} samples in batches of {batch_size} with seed {seed}")
        self.seed = seed
        self.dataset_len = dataset_len
        self.batch_size = batch_size
        self.samples_consumed = 0
        """By all ranks together, since the run began."""
        self._rank, self._world_size = 0, 1
        self._clock = PhaseClock()

    @property
    def data_epoch(self) -> int:
        """Number of the pass over the dataset that the next sample belongs to."""
        return self.samples_consumed // self.dataset_len

    def bind(self, *, rank: int, world_size: int, clock: PhaseClock | None = None) -> None:
        """Say whose share to hand out, and which clock counts the wait for it; ``Session.prepare`` does it."""
        if world_size > self.batch_size:
            raise ValueError(f"a batch of {self.batch_size} leaves ranks of {world_size} without a sample")
        self._rank, self._world_size = rank, world_size
        self._clock = clock or self._clock

    def __iter__(self) -> Iterator[list[int]]:
        return self

    def __next__(self) -> list[int]:
        """This rank's indices of the next batch; the batch counts as consumed."""
        with self._clock.during(Phase.DATA_WAIT):
            indices = self.share(self.samples_consumed)
        self.samples_consumed += self.batch_size
        return indices

    def share(self, position: int) -> list[int]:
        """This rank's indices of the batch that begins at a global position; the cursor stays where it is."""
        first, last = (position + self.batch_size * rank // self._world_size for rank in self._edges())
        return self.order(first, last)

    def order(self, first: int, last: int) -> list[int]:
        """Indices at the global positions ``first`` … ``last - 1``, across passes."""
        items: list[int] = []
        while first < last:
            data_epoch, offset = divmod(first, self.dataset_len)
            end = min(self.dataset_len, offset + last - first)
            positions = np.arange(offset, end, dtype=np.uint64)
            items += shuffled(positions, length=self.dataset_len, key=mixed(self.seed, data_epoch)).tolist()
            first += end - offset
        return items

    def loader(self, dataset: Dataset[Any], **options: Any) -> Iterator[Any]:
        """Batches of a dataset by torch's ``DataLoader``, counted as consumed when they are handed out.

        Workers may read ahead: what they hold and nobody took is read again after a restart. Make it after
        ``restore()``. ``options`` go to ``DataLoader``, without those that choose samples.
        """
        # The loader draws a base seed when it begins; from this generator, not from the one that training uses.
        generator = torch.Generator().manual_seed(mixed(self.seed, self.samples_consumed) >> 1)
        batches = DataLoader(dataset, batch_sampler=_Ahead(self), generator=generator, **options)
        for batch in self._clock.each(batches):
            self.samples_consumed += self.batch_size
            yield batch

    def state_dict(self) -> dict[str, int]:
        """What a checkpoint keeps."""
        return {
            "seed": self.seed,
            "dataset_len": self.dataset_len,
            "data_epoch": self.data_epoch,
            "samples_consumed": self.samples_consumed,
        }

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Go where a checkpoint stood; batch size and ranks may be others than then.

        Raises:
            CheckpointIncompatible: the checkpoint is of another order.
        """
        for name in ("seed", "dataset_len"):
            if state[name] != getattr(self, name):
                raise CheckpointIncompatible(
                    f"the checkpoint's data order has {name} {state[name]}, this run's {getattr(self, name)}"
                )
        self.samples_consumed = state["samples_consumed"]

    def _edges(self) -> tuple[int, int]:
        return self._rank, self._rank + 1


class _Ahead(Sampler[list[int]]):
    """Reads on from the cursor's position without moving it."""

    def __init__(self, cursor: DataCursor) -> None:
        self._cursor = cursor

    def __iter__(self) -> Iterator[list[int]]:
        position = self._cursor.samples_consumed
        while True:
            yield self._cursor.share(position)
            position += self._cursor.batch_size
