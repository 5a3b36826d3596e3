"""What every service's process does alike: start, heartbeats, stop on a signal, exit code."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import version

from trackway_common.clock import Clock
from trackway_common.errors import Unavailable
from trackway_common.events import ServiceHeartbeat
from trackway_common.request_sender import RequestSender

log = logging.getLogger(__name__)

HEARTBEAT_S = 1.0

Main = Callable[[asyncio.Event], Awaitable[None]]


def run_service(main: Main) -> None:
    """Run a service until SIGTERM or SIGINT, and exit: 0 when asked to stop, 1 when it failed.

    Args:
        main: the service; it ends soon after the event it is given was set.
    """
    sys.exit(asyncio.run(_run(main)))


async def _run(main: Main) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    try:
        await _until_stopped(main, stop)
    except Exception:  # the top of the process: report, then let the supervisor start a fresh one
        log.exception("service failed")
        return 1
    return 0


async def _until_stopped(main: Main, stop: asyncio.Event) -> None:
    running = asyncio.ensure_future(main(stop))
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        running.cancel()
    stopping.cancel()
    try:
        await running
    except asyncio.CancelledError:
        if not stop.is_set():
            raise


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
