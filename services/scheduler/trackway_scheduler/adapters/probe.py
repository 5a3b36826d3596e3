"""Ask whether anything answers at an endpoint."""

from __future__ import annotations

import asyncio

from trackway_scheduler.domain.leases import Probe

LIMIT_S = 2.0


async def probe(endpoint: str) -> Probe:
    """Try to connect: a process that is alive but slow still accepts, a dead host does not."""
    host, _, port = endpoint.rpartition(":")
    try:
        async with asyncio.timeout(LIMIT_S):
            _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error) or type(error).__name__
        return Probe(endpoint=endpoint, reachable=False, detail=f"connecting failed: {reason}")
    writer.close()
    return Probe(endpoint=endpoint, reachable=True, detail="it accepts connections")
