"""What a trainer-agent is told by its environment."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from trackway_common.settings import ServiceSettings


class RayBlock(BaseModel):
    """The cluster; its token comes by Ray's own variables, RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str = Field(description="host:port of the head")
    namespace: str = "trackway"


class AgentBlock(BaseModel):
    """Which agent this is, and how patient."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pool: str = "local"
    id: str | None = Field(default=None, description="stays the same when the agent restarts; default: agent-POOL")
    placement_wait_s: float = Field(default=60.0, gt=0, description="for the cluster to grant a gang's resources")
    stop_grace_s: float = Field(default=10.0, ge=0, description="between SIGTERM and SIGKILL of a cancelled attempt")

    @property
    def agent_id(self) -> str:
        """Id of the agent, in facts and heartbeats."""
        return self.id or f"agent-{self.pool}"


class TrainerAgentSettings(ServiceSettings):
    """Settings of one trainer-agent process."""

    state: Path = Field(description="folder for the log lines that TailLogs reads")
    ray: RayBlock
    agent: AgentBlock = AgentBlock()
