"""What the evaluator is told by its environment."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from trackway_common.settings import ServiceSettings


class EvaluatorBlock(BaseModel):
    """How this evaluator works."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    parallel: int = Field(default=1, ge=1, description="evaluations at once; each is one process with one thread")


class EvaluatorSettings(ServiceSettings):
    """Settings of one evaluator process."""

    state: Path = Field(description="folder for evaluations in progress, on a disk that survives a restart")
    evaluator: EvaluatorBlock = EvaluatorBlock()
