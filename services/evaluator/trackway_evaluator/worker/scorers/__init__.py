"""How each kind of task scores a batch of samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, assert_never

import torch
from trackway_common.errors import CommandRejected
from trackway_common.evaluation_pack import Decoding, TaskKind, TaskSpec

from trackway_evaluator.worker.sample import Row, Sample
from trackway_evaluator.worker.scorers.bits_per_byte import BitsPerByte
from trackway_evaluator.worker.scorers.classification import Classification
from trackway_evaluator.worker.scorers.completion import Completion, Decode


class Scorer(Protocol):
    """Scores samples with a model, without gradients; blocks for as long as the model computes."""

    def score(self, samples: Sequence[Sample]) -> list[Row]:
        """One row a sample, in their order; a sample without a finite score has a row with an error.

        Raises:
            CommandRejected: a sample lacks what the kind needs.
        """
        ...


def scorer_for(task: TaskSpec, decoding: Decoding, model: torch.nn.Module, decode: Decode | None) -> Scorer:
    """The scorer of a builtin kind."""
    match task.kind:
        case TaskKind.CLASSIFICATION:
            return Classification(model)
        case TaskKind.BITS_PER_BYTE:
            return BitsPerByte(model)
        case TaskKind.COMPLETION:
            return Completion(model, decoding, task.context, decode)
        case TaskKind.COMMAND:
            raise CommandRejected(f"task {task.id} is scored by a command, not here", reason="CONFIG_INVALID")
    assert_never(task.kind)
