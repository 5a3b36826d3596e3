"""A ClickHouse for tests: chDB behind ClickHouse's HTTP protocol, as the local stack runs it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from pydantic import SecretStr
from trackway_common.settings import ClickHouseSettings

START_S = 30.0
STOP_S = 15.0


class ReadModelServer:
    """One server on one folder; it may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        self._process: subprocess.Popen[bytes] | None = None

    def settings(self, database: str = "trackway") -> ClickHouseSettings:
        """How to reach one of its databases."""
        return ClickHouseSettings(url=f"http://127.0.0.1:{self._port}", database=database, password=SecretStr(""))

    def start(self) -> None:
        """Start it and wait until it answers."""
        module = "trackway.local.clickhouse_server"
        argv = [sys.executable, "-m", module, "--path", str(self._folder), "--port", str(self._port)]
        self._process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/ping", timeout=1):
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        raise AssertionError(f"the server did not answer (exit {self._process.poll()})")

    def kill(self) -> None:
        """SIGKILL it."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(STOP_S)
