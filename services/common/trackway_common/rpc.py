"""A gRPC server as every service runs it: TLS, health, reflection, traces, errors as google.rpc.Status."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection

from trackway_common.errors import TrackwayError, Unavailable
from trackway_common.rpc_errors import DETAILS_KEY, status_code, to_status
from trackway_common.rpc_limits import MESSAGE_LIMITS
from trackway_common.rpc_spans import call_span
from trackway_common.settings import RpcSettings

log = logging.getLogger(__name__)

STOP_GRACE_S = 2.0
SERVER_OPTIONS = (
    *MESSAGE_LIMITS,
    # A caller whose machine vanished is noticed, and its watch ends.
    ("grpc.keepalive_time_ms", 30_000),
    # Else a second server on the same port takes half of the calls instead of failing to start.
    ("grpc.so_reuseport", 0),
)


@dataclass(frozen=True, slots=True)
class Servable:
    """One service implementation and how to register it."""

    add: Callable[[Any, Any], None]
    """``add_…Servicer_to_server`` of the generated module."""
    servicer: Any
    full_name: str
    """Such as trackway_proto.v1.RunService."""


class RpcServer:
    """A running server; not serving until told so."""

    def __init__(self, server: grpc.aio.Server, health: health_aio.HealthServicer, bound: str, address: str) -> None:
        self._server = server
        self._health = health
        self.bound = bound
        """host:port that it listens on."""
        self.address = address
        """host:port that others dial."""

    async def set_serving(self, serving: bool) -> None:
        """Answer health checks accordingly."""
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        await self._health.set("", status)

    async def stop(self) -> None:
        """Refuse new calls, give running ones a moment, close."""
        await self._server.stop(STOP_GRACE_S)


async def serve(settings: RpcSettings, servables: Sequence[Servable]) -> RpcServer:
    """Start listening with health NOT_SERVING.

    Raises:
        Unavailable: the address can't be bound.
    """
    server = grpc.aio.server(interceptors=[_Edge()], options=SERVER_OPTIONS)
    health = health_aio.HealthServicer()
    await health.set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    for servable in servables:
        servable.add(servable.servicer, server)
    names = [servable.full_name for servable in servables]
    reflection.enable_server_reflection((*names, "grpc.health.v1.Health", reflection.SERVICE_NAME), server)
    port = _bind(server, settings)
    await server.start()
    host = settings.listen.rpartition(":")[0]
    bound = f"{host}:{port}"
    return RpcServer(server, health, bound, settings.advertise or bound)


def _bind(server: grpc.aio.Server, settings: RpcSettings) -> int:
    try:
        if settings.cert_file and settings.key_file:
            return server.add_secure_port(settings.listen, _server_credentials(settings))
        return server.add_insecure_port(settings.listen)
    except RuntimeError as error:
        raise Unavailable(f"can't listen on {settings.listen}: {error}; choose another port") from error


def _server_credentials(settings: RpcSettings) -> grpc.ServerCredentials:
    assert settings.cert_file is not None
    assert settings.key_file is not None
    client_ca = settings.client_ca_file.read_bytes() if settings.client_ca_file else None
    return grpc.ssl_server_credentials(
        [(settings.key_file.read_bytes(), settings.cert_file.read_bytes())],
        root_certificates=client_ca,
        require_client_auth=client_ca is not None,
    )


class _Edge(grpc.aio.ServerInterceptor):
    """Every call runs inside a span; every TrackwayError leaves as a status with details."""

    async def intercept_service(
        self, continuation: Callable[..., Awaitable[Any]], handler_call_details: grpc.HandlerCallDetails
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith("/grpc."):
            return handler
        return _wrapped(handler, handler_call_details.method)


def _wrapped(handler: Any, method: str) -> Any:
    shape = {"request_deserializer": handler.request_deserializer, "response_serializer": handler.response_serializer}
    if handler.unary_unary:
        return grpc.unary_unary_rpc_method_handler(_answer_once(handler.unary_unary, method), **shape)
    if handler.stream_unary:
        return grpc.stream_unary_rpc_method_handler(_answer_once(handler.stream_unary, method), **shape)
    if handler.unary_stream:
        return grpc.unary_stream_rpc_method_handler(_answer_many(handler.unary_stream, method), **shape)
    return grpc.stream_stream_rpc_method_handler(_answer_many(handler.stream_stream, method), **shape)


def _answer_once(behaviour: Callable[..., Awaitable[Any]], method: str) -> Callable[..., Awaitable[Any]]:
    async def answer(request: Any, context: Any) -> Any:
        try:
            with call_span(method, context):
                return await behaviour(request, context)
        except TrackwayError as error:
            await _abort(context, error, method)

    return answer


def _answer_many(behaviour: Callable[..., AsyncGenerator[Any]], method: str) -> Callable[..., Awaitable[None]]:
    # A coroutine that writes, not a generator: a cancelled call would leave a generator suspended at its yield,
    # and its span open until the collector comes by, in another task.
    async def answer(request: Any, context: Any) -> None:
        try:
            with call_span(method, context):
                async with aclosing(behaviour(request, context)) as messages:
                    async for message in messages:
                        await _send(context, message)
        except TrackwayError as error:
            await _abort(context, error, method)

    return answer


async def _send(context: Any, message: Any) -> None:
    try:
        await context.write(message)
    except grpc.aio.InternalError as error:  # the call ended while the message was on its way
        raise asyncio.CancelledError from error


async def _abort(context: Any, error: TrackwayError, method: str) -> None:
    log.info("call refused", extra={"method": method, "error": str(error)})
    details = to_status(error).SerializeToString()
    await context.abort(status_code(error), str(error), trailing_metadata=((DETAILS_KEY, details),))
