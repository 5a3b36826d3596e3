"""One rank's training session: what it is given, and what it hands over to be kept."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self, SupportsFloat, TypeVar

import torch
from torch.nn.parallel import DistributedDataParallel
from trackway_common.rank_protocol.error_file import write_error_file

from trackway.training.cursor import DataCursor
from trackway.training.datasets import Dataset
from trackway.training.errors import NumericDivergence
from trackway.training.generators import capture_generators, restore_generators, seed_all
from trackway.training.keeper import Capture, CaptureRefused, Keeper, ResumeSource
from trackway.training.phase_clock import Phase, PhaseClock
from trackway.training.prepared import Prepared, Stateful, bare
from trackway.training.process_group import ProcessGroup
from trackway.training.restoring import STATE, read_shard
from trackway.training.state_tree import Tensors, flatten
from trackway.training.tensor_file import TensorFile, plan_file

T = TypeVar("T")

logger = logging.getLogger(__name__)
GENERATORS = "generators"
LOSS = "loss"
"""Name of the metric that has to be a number."""
ROOM = 1.02
"""For a header that grows by a few digits."""


class Saved(StrEnum):
    """What became of a call of ``checkpoint()``."""

    CAPTURED = "captured"
    """This rank's state is safe from the trainer's death; it is being written, or is written."""
    SKIPPED = "skipped"
    """Left out on every rank because an earlier save is still being written, as the run's policy wants."""
    REFUSED = "refused"
    """This rank's part is lost, with it the checkpoint; training goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a session is given, equal on all ranks but for the device."""

    device: torch.device
    config: Mapping[str, Any]
    seed: int
    datasets: Mapping[str, Dataset]
    skips_when_busy: bool
    error_file: Path | None
    fails_on_non_finite_loss: bool = True


class Session:
    """Made by ``trackway.training.session()``; use it as a context manager, one per process.

    ``checkpoint``, ``restore`` and ``prepare`` are called by every rank at the same point of the program.
    """

    def __init__(self, given: Given, *, group: ProcessGroup, keeper: Keeper) -> None:
        self._given = given
        self._group = group
        self._keeper = keeper
        self._clock = PhaseClock()
        self._prepared: Prepared | None = None
        self._metrics: dict[str, float] = {}
        self._captures = 0
        self._skipped = 0
        self._warmed = False
        self.step: int | None = None
        """The last step that was reported or restored."""
        seed_all(given.seed)

    @property
    def rank(self) -> int:
        """Number of this process among all of the run, from 0."""
        return self._group.ranks.rank

    @property
    def world_size(self) -> int:
        """Number of processes of the run."""
        return self._group.ranks.world_size

    @property
    def device(self) -> torch.device:
        """Where this rank computes."""
        return self._given.device

    @property
    def config(self) -> Mapping[str, Any]:
        """The run's hyperparameters. Read-only: what ran is what was submitted."""
        return MappingProxyType(dict(self._given.config))

    @property
    def seed(self) -> int:
        """The run's seed; the same on all ranks and in all attempts."""
        return self._given.seed

    @property
    def datasets(self) -> Mapping[str, Dataset]:
        """The run's datasets by name."""
        return self._given.datasets

    def dataset(self, name: str) -> Dataset:
        """One of the run's datasets.

        Raises:
            ValueError: the run names no such dataset.
        """
        if name not in self.datasets:
            have = ", ".join(sorted(self.datasets)) or "none"
            raise ValueError(f"the run has no dataset {name!r}; it has {have}")
        return self.datasets[name]

    def prepare(
        self,
        *,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer | None = None,
        lr_scheduler: Stateful | None = None,
        cursor: DataCursor | None = None,
        **extra: Stateful,
    ) -> torch.nn.Module:
        """Name everything that a checkpoint must hold, and get the model to train.

        The model is moved to the device and, with several ranks, wrapped in DistributedDataParallel (wrap it before
        to choose its options). Generators are seeded afresh, differently on each rank: weights are drawn before this
        call and are equal everywhere, dropout after it is not.

        Returns:
            The model to call; state is read from and restored into the one that was given.
        """
        if taken := sorted({GENERATORS, "model", "cursor"} & extra.keys()):
            raise ValueError(f"{taken[0]!r} is a checkpoint's own name; call it otherwise")
        model.to(self.device)
        if self.world_size > 1 and not isinstance(model, DistributedDataParallel):
            model = DistributedDataParallel(model)
        if cursor is not None:
            cursor.bind(rank=self.rank, world_size=self.world_size, clock=self._clock)
        named = {"optimizer": optimizer, "lr_scheduler": lr_scheduler, **extra}
        parts = {name: part for name, part in named.items() if part is not None}
        self._prepared = Prepared(model=bare(model), parts=parts, cursor=cursor)
        seed_all(self.seed, self.rank, 1)
        self._warm(self._prepared)
        return model

    def report(self, step: int, **metrics: SupportsFloat) -> None:
        """Say that a step is finished and what was measured in it: ``report(step, loss=loss, lr=lr)``.

        Raises:
            NumericDivergence: ``loss`` is NaN or infinite, unless the run's spec says ``non_finite_loss: ignore``.
        """
        self.step = step
        self._metrics = {name: _number(value) for name, value in metrics.items()}
        self._clock.step()
        self._keeper.report(step, self._metrics, self._clock.read())
        self._check_loss(step)
        if self._prepared is not None and not self._warmed:
            # Now the optimizer has its state, and a checkpoint its full size.
            self._warmed = True
            self._warm(self._prepared)

    def data(self, batches: Iterable[T]) -> Iterator[T]:
        """Pass batches on and count the wait for each as waiting for data: ``for batch in s.data(loader):``.

        A prepared cursor and its loader are counted without it.
        """
        return self._clock.each(batches)

    def checkpoint(self, step: int) -> Saved:
        """Save everything prepared as of ``step`` finished steps: call it between two steps, on every rank.

        Blocks for one copy in memory, and while an earlier save is still being written if the run's policy is to
        wait. The checkpoint exists once all ranks' parts are on disk and committed, some time later.
        """
        with self._clock.during(Phase.CHECKPOINT_STALL):
            return self._checkpoint(step)

    def restore(self) -> int:
        """Put everything prepared back to the run's last checkpoint; the number of steps done then, 0 if there is none.

        Call it once, after ``prepare`` and after anything that draws random numbers while data is set up: generators
        are restored last.

        Raises:
            CheckpointCorrupt: bytes are not what was committed.
            CheckpointIncompatible: it is of another model, optimizer or data order.
        """
        with self._clock.during(Phase.RESTORE):
            return self._restore()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._group.leave()
        elif self._given.error_file is not None and not isinstance(error, SystemExit):
            write_error_file(self._given.error_file, error, self.step)
        self._keeper.close()

    def _checkpoint(self, step: int) -> Saved:
        prepared = self._required()
        if self._given.skips_when_busy and self._group.any(self._keeper.busy()):
            self._skipped += 1
            self._keeper.report(step, {"trackway/checkpoints_skipped": self._skipped}, self._clock.read())
            return Saved.SKIPPED
        self._captures += 1
        capture = Capture(
            step=step,
            number=self._captures,
            file=self._file(prepared),
            cursor=prepared.cursor_record(),
            metrics=self._metrics if self.step == step else {},
            clock=self._clock,
        )
        try:
            self._keeper.save(capture)
        except CaptureRefused as refused:
            logger.warning("checkpoint of step %d was not saved: %s", step, refused)
            return Saved.REFUSED
        return Saved.CAPTURED

    def _restore(self) -> int:
        prepared = self._required()
        source = self._keeper.resume_source()
        if source is None:
            return 0
        state = read_shard(source, 0, self.device)
        prepared.load(state)
        self._restore_generators(source, state)
        self.step = source.manifest.step
        return source.manifest.step

    def _check_loss(self, step: int) -> None:
        loss = self._metrics.get(LOSS, 0.0)
        if self._given.fails_on_non_finite_loss and not math.isfinite(loss):
            raise NumericDivergence(f"the loss of step {step} is {loss}")

    def _required(self) -> Prepared:
        if self._prepared is None:
            raise RuntimeError("call prepare(model=…, optimizer=…) first: it says what a checkpoint holds")
        return self._prepared

    def _warm(self, prepared: Prepared) -> None:
        self._keeper.warm(int(self._file(prepared).size_bytes * ROOM))

    def _file(self, prepared: Prepared) -> TensorFile:
        """Rank 0 holds what all ranks have alike; each rank its own generators."""
        state = prepared.state() if self.rank == 0 else {}
        tensors: Tensors = {}
        tree = {name: flatten(part, name, tensors) for name, part in state.items()}
        tree[GENERATORS] = flatten(capture_generators(self.device), GENERATORS, tensors)
        return plan_file(tensors, {STATE: json.dumps(tree), "format": "pt"})

    def _restore_generators(self, source: ResumeSource, first: Mapping[str, Any]) -> None:
        if source.manifest.world_size != self.world_size:
            logger.info("generators start anew: the checkpoint is of %d ranks", source.manifest.world_size)
            seed_all(self.seed, self.rank, source.manifest.step + 2)
            return
        state = first if self.rank == 0 else read_shard(source, self.rank, self.device)
        restore_generators(state[GENERATORS], self.device)


def _number(value: SupportsFloat) -> float:
    return float(value.detach() if isinstance(value, torch.Tensor) else value)
