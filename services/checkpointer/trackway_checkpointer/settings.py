"""What the checkpointer is told by its environment."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from trackway_common.settings import ServiceSettings


class CheckpointerBlock(BaseModel):
    """How this checkpointer works."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    grace_s: float = Field(default=60.0, ge=0, description="between a tombstone and the end of a checkpoint's bytes")
    sweep_s: float = Field(default=30.0, gt=0, description="between two looks at every run for entries without command")


class CheckpointerSettings(ServiceSettings):
    """Settings of one checkpointer process."""

    checkpointer: CheckpointerBlock = CheckpointerBlock()
