"""Ways to tell that a child answers."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import grpc
import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from trackway.local.spec import Launch, Probe

PROBE_TIMEOUT_S = 2.0
# Without it channels share their subchannels, and with them the back-off after a refused connection.
_OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)


def tcp_answers(address: str) -> Probe:
    """Something accepts connections there."""
    host, _, port = address.rpartition(":")

    async def answers(_: Launch) -> bool:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT_S):
                _reader, writer = await asyncio.open_connection(host, int(port))
        except (OSError, TimeoutError):
            return False
        writer.close()
        return True

    return answers


def log_says(text: str, then: Probe) -> Probe:
    """This start's log has said so, and the other probe agrees."""

    async def answers(launch: Launch) -> bool:
        with launch.log_file.open("rb") as log:
            log.seek(launch.log_offset)
            said = text.encode() in log.read()
        return said and await then(launch)

    return answers


def http_answers(url: str) -> Probe:
    """GET gives 200."""

    async def answers(_: Launch) -> bool:
        timeout = aiohttp.ClientTimeout(total=PROBE_TIMEOUT_S)
        try:
            async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
                return response.status == 200
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False

    return answers


def grpc_serves(address: str) -> Probe:
    """The health service says SERVING for the whole server."""

    async def answers(_: Launch) -> bool:
        async with grpc.aio.insecure_channel(address, options=_OWN_CONNECTION) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)  # the stubs package leaves its methods out
            try:
                reply = await stub.Check(health_pb2.HealthCheckRequest(), timeout=PROBE_TIMEOUT_S)
            except grpc.RpcError:
                return False
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)

    return answers
