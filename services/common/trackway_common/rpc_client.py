"""Channels to other services."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from trackway_common.telemetry import current_traceparent

MAX_MESSAGE_BYTES = 8 << 20
OPTIONS = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
)


def credentials(
    ca_file: Path | None, cert_file: Path | None = None, key_file: Path | None = None
) -> grpc.ChannelCredentials | None:
    """Return TLS credentials, or None when no authority is given and the channel is plain."""
    if ca_file is None:
        return None
    return grpc.ssl_channel_credentials(
        root_certificates=ca_file.read_bytes(),
        private_key=key_file.read_bytes() if key_file else None,
        certificate_chain=cert_file.read_bytes() if cert_file else None,
    )


def open_channel(endpoint: str, tls: grpc.ChannelCredentials | None = None) -> grpc.aio.Channel:
    """Return a channel that carries the trace context; connects when first used."""
    interceptors = [_TraceUnary(), _TraceStream()]
    if tls is None:
        return grpc.aio.insecure_channel(endpoint, options=OPTIONS, interceptors=interceptors)
    return grpc.aio.secure_channel(endpoint, tls, options=OPTIONS, interceptors=interceptors)


class _TraceUnary(grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(
        self, continuation: Callable[..., Any], client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        return await continuation(_with_trace(client_call_details), request)


class _TraceStream(grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(
        self, continuation: Callable[..., Any], client_call_details: grpc.aio.ClientCallDetails, request: Any
    ) -> Any:
        return await continuation(_with_trace(client_call_details), request)


def _with_trace(details: grpc.aio.ClientCallDetails) -> grpc.aio.ClientCallDetails:
    traceparent = current_traceparent()
    if not traceparent:
        return details
    metadata = grpc.aio.Metadata(*(details.metadata or ()), ("traceparent", traceparent))
    return grpc.aio.ClientCallDetails(
        details.method, details.timeout, metadata, details.credentials, details.wait_for_ready
    )
