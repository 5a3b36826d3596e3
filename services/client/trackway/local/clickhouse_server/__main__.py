"""``python -m trackway.local.clickhouse_server --path FOLDER --port PORT``: serve until SIGTERM."""

from __future__ import annotations

import argparse
import logging
import os
import time
from pathlib import Path

from aiohttp import web
from trackway_common.telemetry import configure_logging

log = logging.getLogger(__name__)

SHUTDOWN_S = 2.0


def main() -> None:
    """Open the engine, then listen on the loopback."""
    parser = argparse.ArgumentParser(prog="trackway.local.clickhouse_server", description=__doc__)
    parser.add_argument("--path", type=Path, required=True, help="data folder; made when absent")
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    arguments = parser.parse_args()
    configure_logging("clickhouse")
    serve(arguments.path, arguments.port)


def serve(path: Path, port: int) -> None:
    """Serve one data folder until the process is told to end."""
    # ClickHouse's times are UTC, whatever the machine's zone; the engine reads TZ when it loads.
    os.environ["TZ"] = "UTC"
    time.tzset()
    from trackway.local.clickhouse_server.app import make_app
    from trackway.local.clickhouse_server.engine import Engine

    path.mkdir(parents=True, exist_ok=True)
    engine = Engine(path)
    log.info("serving", extra={"port": port, "version": engine.version})
    web.run_app(make_app(engine), host="127.0.0.1", port=port, access_log=None, print=None, shutdown_timeout=SHUTDOWN_S)


if __name__ == "__main__":
    main()
