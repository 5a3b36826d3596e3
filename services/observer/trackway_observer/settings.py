"""Settings of the observer."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from trackway_common.settings import ClickHouseSettings, ServiceSettings

PROJECTOR = "trackway"
"""Name in ledger and tokens; one process projects under it at a time."""


class HistoryLimits(BaseModel):
    """What people's own SQL may take."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query_s: int = Field(default=10, gt=0, description="seconds that one query may run")
    query_memory_bytes: int = Field(default=1 << 30, gt=0, description="memory that one query may use")
    fresh_s: float = Field(default=2.0, ge=0, description="seconds that a call waits for the log's end")


class ObserverSettings(ServiceSettings):
    """TRACKWAY_CLICKHOUSE__URL and TRACKWAY_HISTORY__QUERY_S, beside what every service has."""

    clickhouse: ClickHouseSettings
    history: HistoryLimits = HistoryLimits()
    generation: int = Field(default=1, ge=1, description="of the projection; a rebuild in place takes the next")
