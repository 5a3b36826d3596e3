"""Settings blocks that several services share; each service composes its own from them.

Read once in ``__main__`` from the environment: prefix ``TRACKWAY_``, nested by ``__``, such as
``TRACKWAY_KAFKA__BOOTSTRAP``. Frozen, and passed down as plain values. A setting that would have no effect, such as a
password where none is sent, is refused: who sets it believes that it protects something.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


def _readable(file: Path) -> Path:
    try:
        file.open("rb").close()
    except OSError as error:
        raise ValueError(f"{file} can't be read ({error.strerror})") from error
    return file


_EVERY_ADDRESS = frozenset({"0.0.0.0", "[::]", ""})  # noqa: S104 - recognised, not bound
ReadableFile = Annotated[Path, AfterValidator(_readable)]


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KafkaSettings(_Block):
    """Where the log is, and how to reach it."""

    bootstrap: str = Field(description="host:port, several separated by commas")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "PLAIN"
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    ca_file: ReadableFile | None = Field(default=None, description="PEM; the system's authorities when absent")
    cert_file: ReadableFile | None = Field(default=None, description="client certificate, PEM")
    key_file: ReadableFile | None = Field(default=None, description="client key, PEM")
    append_timeout_s: float = Field(default=10.0, gt=0, description="after it an append is uncertain")
    replication_factor: int = Field(default=1, ge=1, description="of topics that trackway creates")

    @property
    def speaks_tls(self) -> bool:
        return self.security_protocol in {"SSL", "SASL_SSL"}

    @property
    def speaks_sasl(self) -> bool:
        return self.security_protocol in {"SASL_PLAINTEXT", "SASL_SSL"}

    @model_validator(mode="after")
    def _have_an_effect(self) -> Self:
        if self.speaks_sasl and not (self.sasl_username and self.sasl_password):
            raise ValueError(
                "TRACKWAY_KAFKA__SASL_USERNAME and TRACKWAY_KAFKA__SASL_PASSWORD are needed by "
                f"{self.security_protocol}"
            )
        if not self.speaks_sasl and (self.sasl_username or self.sasl_password):
            raise ValueError(
                "TRACKWAY_KAFKA__SASL_USERNAME and TRACKWAY_KAFKA__SASL_PASSWORD have no effect with "
                f"{self.security_protocol}: set TRACKWAY_KAFKA__SECURITY_PROTOCOL to SASL_SSL"
            )
        if not self.speaks_tls and (self.ca_file or self.cert_file or self.key_file):
            raise ValueError(
                "TRACKWAY_KAFKA__CA_FILE, __CERT_FILE and __KEY_FILE have no effect with "
                f"{self.security_protocol}: set TRACKWAY_KAFKA__SECURITY_PROTOCOL to SSL or SASL_SSL"
            )
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("TRACKWAY_KAFKA__CERT_FILE and TRACKWAY_KAFKA__KEY_FILE need each other")
        return self


class ClickHouseSettings(_Block):
    """Where the read model is."""

    url: str = Field(description="http://host:port or https://host:port")
    user: str = "default"
    password: SecretStr = SecretStr("")
    database: str = "trackway"
    ca_file: ReadableFile | None = Field(default=None, description="PEM; the system's authorities when absent")
    verify: bool = True

    @model_validator(mode="after")
    def _have_an_effect(self) -> Self:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError("TRACKWAY_CLICKHOUSE__URL must begin with https:// or http://")
        if self.ca_file and self.url.startswith("http://"):
            raise ValueError("TRACKWAY_CLICKHOUSE__CA_FILE has no effect with http://: write https:// in __URL")
        return self


class StoreSettings(_Block):
    """Where blobs and checkpoints are."""

    url: str = Field(description="file:///absolute/folder")


class RpcSettings(_Block):
    """Where this service listens; with certificate and key it speaks TLS only."""

    listen: str = Field(default="127.0.0.1:0", description="host:port; port 0 takes a free one")
    advertise: str | None = Field(default=None, description="host:port that others dial; the bound address when absent")
    cert_file: ReadableFile | None = None
    key_file: ReadableFile | None = None
    client_ca_file: ReadableFile | None = Field(
        default=None, description="when set, clients need a certificate of this CA"
    )
    ca_file: Path | None = Field(default=None, description="for clients, which share these names; services ignore it")

    @model_validator(mode="after")
    def _have_an_effect(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError(
                "TRACKWAY_RPC__CERT_FILE and TRACKWAY_RPC__KEY_FILE need each other: nothing is encrypted with one"
            )
        if self.client_ca_file and self.cert_file is None:
            raise ValueError(
                "TRACKWAY_RPC__CLIENT_CA_FILE has no effect without TRACKWAY_RPC__CERT_FILE and __KEY_FILE"
            )
        if self.listen.rpartition(":")[0] in _EVERY_ADDRESS and self.advertise is None:
            raise ValueError(
                f"TRACKWAY_RPC__ADVERTISE is needed with TRACKWAY_RPC__LISTEN={self.listen}: nobody can dial that"
            )
        self._check_pair()
        return self

    def _check_pair(self) -> None:
        # gRPC would say no more than that it can't bind the port.
        if self.cert_file and self.key_file:
            try:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self.cert_file, self.key_file)
                context.load_verify_locations(self.client_ca_file or self.cert_file)
            except ssl.SSLError as error:
                raise ValueError(
                    f"TRACKWAY_RPC__CERT_FILE, __KEY_FILE or __CLIENT_CA_FILE can't be used ({error})"
                ) from error


class TelemetrySettings(_Block):
    """Logs and traces of the service itself."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    otlp_endpoint: str | None = Field(default=None, description="OTLP/gRPC collector; no export when absent")
    trace_file: Path | None = Field(default=None, description="spans as JSON lines, for machines without a collector")


class LogSettings(BaseSettings):
    """What reaches the log, and nothing else."""

    model_config = SettingsConfigDict(
        env_prefix="TRACKWAY_", env_nested_delimiter="__", frozen=True, extra="ignore", env_ignore_empty=True
    )

    kafka: KafkaSettings


class ServiceSettings(LogSettings):
    """What every service needs."""

    store: StoreSettings
    rpc: RpcSettings = RpcSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    state: Path | None = Field(default=None, description="folder for what a service keeps beside the log")
    instance: str | None = Field(default=None, description="name of this process among its kind; drawn when absent")
