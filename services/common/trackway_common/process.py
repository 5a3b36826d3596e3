"""A service's process: settings, logs, the event log, stop on a signal, exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import NoReturn, TypeVar

from trackway_common.environment import read_settings
from trackway_common.errors import TrackwayError
from trackway_common.event_log import EventLog
from trackway_common.kafka_connection import refuse_wrong_credentials
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.settings import ServiceSettings
from trackway_common.telemetry import configure_logging, configure_tracing
from trackway_common.variables import unknown_variables

log = logging.getLogger(__name__)

S = TypeVar("S", bound=ServiceSettings)
Main = Callable[[S, EventLog], Awaitable[None]]


def run_service(service: str, kind: type[S], main: Main[S]) -> NoReturn:
    """Run a service until SIGTERM or SIGINT, and exit: 0 when asked to stop, 1 when it failed.

    Args:
        service: its name in logs and traces.
        kind: its settings, read from the environment.
        main: the service; it is cancelled when it has to stop.
    """
    sys.exit(asyncio.run(_run(service, kind, main)))


async def _run(service: str, kind: type[S], main: Main[S]) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop.set)
    configure_logging(service)
    try:
        await _until_stopped(_serve(service, kind, main), stop)
    except TrackwayError as error:
        # Its message says what to correct; where in the code it was raised says nothing more.
        log.error("service failed", extra={"error": str(error)})
        return 1
    except Exception:  # the top of the process: report, then let the supervisor start a fresh one
        log.exception("service failed")
        return 1
    return 0


async def _serve(service: str, kind: type[S], main: Main[S]) -> None:
    settings = read_settings(kind)
    configure_logging(service, settings.telemetry.log_level)
    warn_of_unknown(kind)
    configure_tracing(service, settings.telemetry)
    await refuse_wrong_credentials(settings.kafka)
    event_log = KafkaEventLog(settings.kafka)
    try:
        await main(settings, event_log)
    finally:
        await event_log.close()


def warn_of_unknown(kind: type[ServiceSettings]) -> None:
    """Log each variable of the environment that looks like a setting and is none."""
    for name, closest in unknown_variables(kind, os.environ).items():
        log.warning("unknown variable ignored", extra={"variable": name, "closest": closest})


async def _until_stopped(work: Awaitable[None], stop: asyncio.Event) -> None:
    running = asyncio.ensure_future(work)
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
