"""What the scheduler is told by its environment."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from trackway_common.settings import ServiceSettings


class LeaseSettings(BaseModel):
    """When a silent agent is probed, and when its attempts are given up. Seconds while the log is readable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    probe_after_s: float = Field(default=15.0, gt=0)
    write_off_after_s: float = Field(default=60.0, gt=0, description="and only if the probe failed too")


class SchedulerSettings(ServiceSettings):
    """Settings of one scheduler process."""

    compute_catalogue: Path = Field(description="YAML file of compute classes and their prices")
    lease: LeaseSettings = LeaseSettings()
    takeover_after_s: float = Field(default=1.5, gt=0, description="a standby that hears no active one claims")
