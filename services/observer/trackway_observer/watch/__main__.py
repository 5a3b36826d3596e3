"""``python -m trackway_observer.watch``: run the Faust worker until told to stop, or until the observer is gone."""

from __future__ import annotations

import os
import signal
import sys
import threading

import faust
from trackway_common.environment import read_settings
from trackway_common.telemetry import configure_logging

from trackway_observer.watch.app import build_app
from trackway_observer.watch.rules import Thresholds
from trackway_observer.watch.settings import WatchSettings


def main() -> None:
    settings = read_settings(WatchSettings)
    configure_logging("watch", settings.telemetry.log_level)
    limits = Thresholds(heartbeat_s=settings.watch.heartbeat_s, progress_s=settings.watch.progress_s)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    app = build_app(settings.kafka, limits)
    worker = faust.Worker(app, quiet=True, override_logging=False, redirect_stdouts=False)
    # It would write escape sequences for a terminal into the log.
    worker.spinner = None
    worker.execute_from_commandline()


def _end_with_parent() -> None:
    """The observer holds the other end of our standard input; at its end nobody would restart or stop us."""
    # Not through sys.stdin: the interpreter takes its lock when it ends, and would wait for this thread.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
