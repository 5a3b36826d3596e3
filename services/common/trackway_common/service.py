"""What every service does alike: heartbeats, and waiting for a part that is away."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from importlib.metadata import version

from trackway_common.clock import Clock
from trackway_common.errors import Unavailable
from trackway_common.events import ServiceHeartbeat
from trackway_common.request_sender import RequestSender

log = logging.getLogger(__name__)

HEARTBEAT_S = 1.0


async def beat(sender: RequestSender, clock: Clock, service: str, instance: str, endpoint: str) -> None:
    """Announce a service once a second, for ever; a log that is away is waited out."""
    heartbeat = ServiceHeartbeat(service=service, instance=instance, endpoint=endpoint, version=version("trackway"))
    while True:
        try:
            await sender.send(heartbeat, key=f"{service}/{instance}")
        except Unavailable as error:
            log.info("heartbeat not sent", extra={"error": str(error)})
        await clock.sleep(HEARTBEAT_S)


async def with_backoff(action: Callable[[], Awaitable[None]], clock: Clock, *, what: str, retry_s: float = 0.5) -> None:
    """Repeat an action while it raises Unavailable, for ever; other errors pass."""
    while True:
        try:
            return await action()
        except Unavailable as error:
            log.info("waiting", extra={"for": what, "error": str(error)})
            await clock.sleep(retry_s)
