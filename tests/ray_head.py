"""A real Ray head for tests, with a token of its own and free ports."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

UP_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RayHead:
    """How to reach it."""

    address: str
    environment: dict[str, str]
    """What a driver needs before it imports Ray."""
    pid: int = 0
    """Leader of a session of its own."""


@contextmanager
def ray_head(*, cpus: int = 4, again: RayHead | None = None) -> Iterator[RayHead]:
    """Run a head until the block ends; ``again`` starts a dead one anew, at its address and with its token."""
    with tempfile.TemporaryDirectory(prefix="twr-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        port, client, dashboard = _free_ports(3)
        head = again or RayHead(address=f"127.0.0.1:{port}", environment=_environment(Path(folder)))
        command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", f"--num-cpus={cpus}"]
        command += ["--include-dashboard=false", "--disable-usage-stats", "--node-ip-address=127.0.0.1"]
        command += [f"--port={head.address.partition(':')[2]}", f"--ray-client-server-port={client}"]
        command += [f"--dashboard-agent-listen-port={dashboard}", "--min-worker-port=0", "--max-worker-port=0"]
        command += [f"--temp-dir={folder}/r"]
        with (Path(folder) / "log").open("w+") as log:
            process = subprocess.Popen(
                command, env=os.environ | head.environment, stdout=log, stderr=log, start_new_session=True
            )
            try:
                _await(head.address, process, Path(log.name))
                yield replace(head, pid=process.pid)
            finally:
                _end(process)


def kill_head(head: RayHead) -> None:
    """SIGKILL to the head and everything in its session, at once."""
    for pid in [head.pid, *_session(head.pid)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _environment(folder: Path) -> dict[str, str]:
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_memory_monitor_refresh_ms": "0",
    }


def _await(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + UP_S
    while "Ray runtime started" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, f"no Ray head at {host}:{port}: {log.read_text()}"
        time.sleep(0.1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the head and all that it started: its session is ours alone."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for child in _session(process.pid):
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _session(leader: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, NotADirectoryError):
            continue
        if entry.name.isdigit() and int(fields[3]) == leader:
            found.append(int(entry.name))
    return found


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for sock in sockets:
            sock.bind(("127.0.0.1", 0))
        return [sock.getsockname()[1] for sock in sockets]
