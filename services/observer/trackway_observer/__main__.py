"""``python -m trackway_observer``: the service, with settings from the environment."""

from __future__ import annotations

import asyncio
import logging

from trackway_common.kafka_log import KafkaEventLog
from trackway_common.service import run_service
from trackway_common.telemetry import configure_logging, configure_tracing

from trackway_observer.service import SERVICE, run_observer
from trackway_observer.settings import ObserverSettings


async def main(stop: asyncio.Event) -> None:
    """Run until asked to stop; ``run_service`` cancels it then."""
    settings = ObserverSettings()  # type: ignore[call-arg] # fields come from the environment
    configure_logging(SERVICE, settings.telemetry.log_level)
    # The client reports each lost connection itself; what follows from it is logged here, once.
    logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL)
    configure_tracing(SERVICE, settings.telemetry)
    event_log = KafkaEventLog(settings.kafka)
    try:
        await run_observer(settings, event_log)
    finally:
        await event_log.close()


if __name__ == "__main__":
    run_service(main)
