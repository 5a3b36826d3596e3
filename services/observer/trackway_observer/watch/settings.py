"""Settings of the watch."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from trackway_common.settings import ServiceSettings


class WatchLimits(BaseModel):
    """How long quiet is normal."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    heartbeat_s: float = Field(default=10.0, gt=0, description="seconds without a rank's heartbeat")
    progress_s: float = Field(default=300.0, gt=0, description="seconds without a finished step, after the first")


class WatchSettings(ServiceSettings):
    """TRACKWAY_WATCH__HEARTBEAT_S and TRACKWAY_WATCH__PROGRESS_S, beside what every service has."""

    watch: WatchLimits = WatchLimits()
