"""The objects whose state is the run's state: taken together by a checkpoint, put back together by a restore."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch.nn.parallel import DistributedDataParallel
from trackway_common.checkpoint.records import CursorRecord

from trackway.training.cursor import DataCursor
from trackway.training.errors import CheckpointIncompatible
from trackway.training.optimizer_state import load_optimizer


@runtime_checkable
class Stateful(Protocol):
    """Anything whose state a checkpoint should hold, such as a gradient scaler or a running average."""

    def state_dict(self) -> Any:
        """None, numbers, text, bytes, tensors, numpy arrays, and lists, tuples and mappings of those."""
        ...

    def load_state_dict(self, state_dict: Any) -> Any:
        """Become what ``state_dict`` returned then."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What ``Session.prepare`` was given."""

    model: torch.nn.Module
    """Bare: without the wrapper that spreads it over ranks."""
    parts: Mapping[str, Stateful]
    """Optimizer, scheduler and whatever else there is, by name."""
    cursor: DataCursor | None

    def state(self) -> dict[str, Any]:
        """Nested state of everything; tensors are the live ones, not copies."""
        state: dict[str, Any] = {"model": self.model.state_dict()}
        state |= {name: part.state_dict() for name, part in self.parts.items()}
        return state | ({"cursor": self.cursor.state_dict()} if self.cursor else {})

    def load(self, state: Mapping[str, Any]) -> None:
        """Put everything back.

        Raises:
            CheckpointIncompatible: it is the state of other objects than these.
        """
        expected = {"model", *self.parts} | ({"cursor"} if self.cursor else set())
        if missing := sorted(expected - state.keys()):
            raise CheckpointIncompatible(f"the checkpoint holds no state of {', '.join(missing)}")
        try:
            self.model.load_state_dict(state["model"])
            for name, part in self.parts.items():
                _load(part, state[name])
        except torch.OutOfMemoryError:
            raise  # A RuntimeError too, but of the device, not of the checkpoint.
        except (RuntimeError, ValueError, KeyError) as error:
            raise CheckpointIncompatible(f"the checkpoint is of another model or optimizer: {error}") from error
        if self.cursor is not None:
            self.cursor.load_state_dict(state["cursor"])

    def cursor_record(self) -> CursorRecord | None:
        """The cursor as receipts repeat it."""
        if self.cursor is None:
            return None
        return CursorRecord(
            seed=str(self.cursor.seed),
            data_epoch=self.cursor.data_epoch,
            samples_consumed=self.cursor.samples_consumed,
        )


def bare(model: torch.nn.Module) -> torch.nn.Module:
    """The model that a wrapper for several ranks holds, else the model itself."""
    if isinstance(model, DistributedDataParallel):
        inner: torch.nn.Module = model.module
        return inner
    return model


def _load(part: Stateful, state: Any) -> None:
    if isinstance(part, torch.optim.Optimizer):
        load_optimizer(part, state)
    else:
        part.load_state_dict(state)
