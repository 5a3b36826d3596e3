"""How a channel to a service is opened: its options and TLS. Nothing else in the product opens one to make calls."""

from __future__ import annotations

import json

import grpc
from trackway_common.errors import CommandRejected
from trackway_common.rpc_limits import MESSAGE_LIMITS

from trackway.client.settings import ClientSettings

_RETRY = {
    "maxAttempts": 5,
    "initialBackoff": "0.2s",
    "maxBackoff": "2s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE", "ABORTED"],
}
# Watches and logs resume by cursor themselves; a retry below them would hide how long an outage is.
_RESUMED_ELSEWHERE = [
    {"service": "trackway_proto.v1.RunService", "method": "WatchRun"},
    {"service": "trackway_proto.v1.AgentService", "method": "TailLogs"},
]
OPTIONS = (
    *MESSAGE_LIMITS,
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    (
        "grpc.service_config",
        json.dumps({"methodConfig": [{"name": _RESUMED_ELSEWHERE}, {"name": [{}], "retryPolicy": _RETRY}]}),
    ),
)
"""Every mutating call carries a request id, so the channel itself may repeat one that met an outage."""


def open_channel(endpoint: str, tls: grpc.ChannelCredentials | None) -> grpc.Channel:
    """Return a channel that connects when it is first used; plain without credentials."""
    if tls is None:
        return grpc.insecure_channel(endpoint, options=OPTIONS)
    return grpc.secure_channel(endpoint, tls, options=OPTIONS)


def tls_credentials(settings: ClientSettings) -> grpc.ChannelCredentials | None:
    """Credentials for the services; None when no authority is set and channels are plain.

    Raises:
        CommandRejected: a file of them can't be read, or a client certificate is set alone.
    """
    if settings.ca_file is None:
        if settings.cert_file or settings.key_file:
            raise CommandRejected(
                "TRACKWAY_RPC__CERT_FILE and TRACKWAY_RPC__KEY_FILE have no effect without TRACKWAY_RPC__CA_FILE: "
                "set it, so that the service is known before it is told who calls"
            )
        return None
    try:
        return grpc.ssl_channel_credentials(
            root_certificates=settings.ca_file.read_bytes(),
            private_key=settings.key_file.read_bytes() if settings.key_file else None,
            certificate_chain=settings.cert_file.read_bytes() if settings.cert_file else None,
        )
    except OSError as error:
        raise CommandRejected(
            f"{error.filename}: {error.strerror}; correct TRACKWAY_RPC__CA_FILE, __CERT_FILE or __KEY_FILE"
        ) from error
