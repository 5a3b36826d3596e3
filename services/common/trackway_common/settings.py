"""Settings blocks that several services share; each service composes its own from them.

Read once in ``__main__`` from the environment: prefix ``TRACKWAY_``, nested by ``__``, such as
``TRACKWAY_KAFKA__BOOTSTRAP``. Frozen, and passed down as plain values.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KafkaSettings(_Block):
    """Where the log is, and how to reach it."""

    bootstrap: str = Field(description="host:port, several separated by commas")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    ca_file: Path | None = Field(default=None, description="PEM; the system's authorities when absent")
    cert_file: Path | None = Field(default=None, description="client certificate, PEM")
    key_file: Path | None = Field(default=None, description="client key, PEM")
    append_timeout_s: float = Field(default=10.0, gt=0, description="after it an append is uncertain")
    replication_factor: int = Field(default=1, ge=1, description="of topics that trackway creates")


class ClickHouseSettings(_Block):
    """Where the read model is."""

    url: str = Field(description="http://host:port or https://host:port")
    user: str = "default"
    password: SecretStr = SecretStr("")
    database: str = "trackway"
    ca_file: Path | None = None
    verify: bool = True


class StoreSettings(_Block):
    """Where blobs and checkpoints are."""

    url: str = Field(description="file:///absolute/folder")


class RpcSettings(_Block):
    """Where this service listens; with certificate and key it speaks TLS only."""

    listen: str = Field(default="127.0.0.1:0", description="host:port; port 0 takes a free one")
    advertise: str | None = Field(default=None, description="host:port that others dial; the bound address when absent")
    cert_file: Path | None = None
    key_file: Path | None = None
    client_ca_file: Path | None = Field(default=None, description="when set, clients need a certificate of this CA")
    ca_file: Path | None = Field(default=None, description="for clients, which share these names; services ignore it")


class TelemetrySettings(_Block):
    """Logs and traces of the service itself."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    otlp_endpoint: str | None = Field(default=None, description="OTLP/gRPC collector; no export when absent")
    trace_file: Path | None = Field(default=None, description="spans as JSON lines, for machines without a collector")


class ServiceSettings(BaseSettings):
    """What every service needs."""

    model_config = SettingsConfigDict(
        env_prefix="TRACKWAY_", env_nested_delimiter="__", frozen=True, extra="ignore", env_ignore_empty=True
    )

    kafka: KafkaSettings
    store: StoreSettings
    rpc: RpcSettings = RpcSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    state: Path | None = Field(default=None, description="folder for what a service keeps beside the log")
    instance: str | None = Field(default=None, description="name of this process among its kind; drawn when absent")
