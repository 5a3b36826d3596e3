"""The gRPC edge: errors keep their meaning, traces go through, health and TLS work."""

from __future__ import annotations

import ssl
import subprocess

import grpc
import grpc.aio
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from trackway.client.calls import metadata
from trackway_common.errors import CommandRejected, CorruptLog, Fenced, FieldViolation, NotFound, Unavailable
from trackway_common.rpc import Servable, serve
from trackway_common.rpc_errors import as_trackway_error, status_code
from trackway_common.settings import RpcSettings
from trackway_common.telemetry import current_traceparent, span
from trackway_proto.v1 import pool_service_pb2 as pb
from trackway_proto.v1 import pool_service_pb2_grpc as stubs

VIOLATION = FieldViolation(field="name", description="names no pool")


class Pools(stubs.PoolServiceServicer):
    """Raises what it is given; answers with the trace context that it sees."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def GetPool(self, request, context):
        if self._error:
            raise self._error
        return pb.Pool(name=current_traceparent())


async def running(settings: RpcSettings, error: Exception | None = None):
    servicer = Servable(stubs.add_PoolServiceServicer_to_server, Pools(error), "trackway_proto.v1.PoolService")
    return await serve(settings, [servicer])


@pytest.mark.parametrize(
    "error",
    [
        CommandRejected("bad name", reason="BAD_NAME", violations=(VIOLATION,)),
        CommandRejected("there already", reason="ALREADY_EXISTS"),
        CommandRejected("has ended", reason="RUN_ENDED"),
        NotFound("no such pool"),
        Fenced("another writer"),
        Unavailable("later"),
        CorruptLog("a gap"),
    ],
)
async def test_an_error_arrives_as_what_it_was(error):
    server = await running(RpcSettings(), error)
    async with grpc.aio.insecure_channel(server.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stubs.PoolServiceStub(channel).GetPool(pb.GetPoolRequest())
    arrived = as_trackway_error(raised.value)
    assert raised.value.code() is status_code(error)
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    if isinstance(error, CommandRejected):
        assert (arrived.reason, arrived.violations) == (error.reason, error.violations)
    await server.stop()


async def test_the_trace_goes_through():
    trace.set_tracer_provider(TracerProvider())
    server = await running(RpcSettings())
    async with grpc.aio.insecure_channel(server.address) as channel:
        with span("caller") as caller:
            answer = await stubs.PoolServiceStub(channel).GetPool(pb.GetPoolRequest(), metadata=metadata())
    assert answer.name.split("-")[1] == f"{caller.get_span_context().trace_id:032x}"
    await server.stop()


async def test_health_follows_the_service():
    server = await running(RpcSettings())
    async with grpc.aio.insecure_channel(server.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        before = await health.Check(health_pb2.HealthCheckRequest())
        await server.set_serving(True)
        after = await health.Check(health_pb2.HealthCheckRequest())
    states = health_pb2.HealthCheckResponse
    assert (before.status, after.status) == (states.NOT_SERVING, states.SERVING)
    await server.stop()


async def test_a_taken_port_is_named():
    server = await running(RpcSettings())
    with pytest.raises(Unavailable, match=server.bound):
        await running(RpcSettings(listen=server.bound))
    await server.stop()


async def test_tls_is_spoken_when_a_certificate_is_given(tmp_path):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run([*new, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    server = await running(RpcSettings(cert_file=cert, key_file=key))
    async with grpc.aio.secure_channel(server.address, grpc.ssl_channel_credentials(cert.read_bytes())) as channel:
        await stubs.PoolServiceStub(channel).GetPool(pb.GetPoolRequest())
    host, _, port = server.address.partition(":")
    assert "BEGIN CERTIFICATE" in ssl.get_server_certificate((host, int(port)))
    await server.stop()
