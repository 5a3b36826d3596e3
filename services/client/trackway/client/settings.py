"""What the client reads from its environment; the only place in it that does.

Plain dataclasses, not pydantic-settings: its import takes longer than most commands.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Where the services are and how to reach them."""

    endpoint: str = ""
    """host:port of the scheduler; empty: the local stack's."""
    log: str = ""
    """host:port of the log's broker, which only `trackway log export` asks; services know more of it."""
    state: Path | None = None
    """State folder of the local stack."""
    ca_file: Path | None = None
    """Authorities that services are checked against, PEM; the channel is plain without."""
    cert_file: Path | None = None
    key_file: Path | None = None


def read_settings(environ: Mapping[str, str] = os.environ) -> ClientSettings:
    """Return the settings of TRACKWAY_{ENDPOINT,STATE}, TRACKWAY_KAFKA__BOOTSTRAP, TRACKWAY_RPC__{CA,CERT,KEY}_FILE."""

    def path(name: str) -> Path | None:
        return Path(value).expanduser() if (value := environ.get(name)) else None

    return ClientSettings(
        endpoint=environ.get("TRACKWAY_ENDPOINT", ""),
        log=environ.get("TRACKWAY_KAFKA__BOOTSTRAP", ""),
        state=path("TRACKWAY_STATE"),
        ca_file=path("TRACKWAY_RPC__CA_FILE"),
        cert_file=path("TRACKWAY_RPC__CERT_FILE"),
        key_file=path("TRACKWAY_RPC__KEY_FILE"),
    )
