"""``python -m trackway_observer``: the service, with settings from the environment."""

from __future__ import annotations

import logging

from trackway_common.event_log import EventLog
from trackway_common.process import run_service

from trackway_observer.service import SERVICE, run_observer
from trackway_observer.settings import ObserverSettings


async def main(settings: ObserverSettings, event_log: EventLog) -> None:
    """Run until cancelled."""
    # The client reports each lost connection itself; what follows from it is logged here, once.
    logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL)
    await run_observer(settings, event_log)


if __name__ == "__main__":
    run_service(SERVICE, ObserverSettings, main)
