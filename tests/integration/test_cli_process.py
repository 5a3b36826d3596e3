"""``trackway`` as a process: signals, terminals and pipes as they really are."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trackway_proto.v1.pool_service_pb2 import ListPoolsResponse, Pool

from tests.integration.cli_harness import RUN, fake, spec
from tests.integration.fake_trackway import FakeTrackway

__all__ = ["fake", "spec"]

ESCAPE = b"\x1b["
TRACKWAY = str(Path(sys.executable).with_name("trackway"))
HEARS_CTRL_C = [
    sys.executable,
    "-c",
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])",
]
"""A suite that runs in the background inherits an ignored SIGINT, and hands it on."""


def _on_terminal(*arguments: str, **environment: str) -> bytes:
    """What a command prints when stdout and stderr are a terminal."""
    reader, terminal = pty.openpty()
    variables = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": "120", **environment}
    process = subprocess.Popen([TRACKWAY, *arguments], stdout=terminal, stderr=terminal, env=variables)
    os.close(terminal)
    printed = bytearray()
    try:
        while chunk := os.read(reader, 65536):
            printed += chunk
    except OSError:  # EIO: the last writer closed the terminal
        pass
    os.close(reader)
    assert process.wait(30) == 0, bytes(printed)
    return bytes(printed)


@pytest.fixture
def pool_list(fake: FakeTrackway) -> list[str]:
    fake.answers["ListPools"] = ListPoolsResponse(pools=[Pool(name="pools/local", reachable=True, cpus=8)])
    return ["pool", "list", "--endpoint", fake.endpoint]


def test_colours_only_on_a_terminal(pool_list: list[str]) -> None:
    assert ESCAPE in _on_terminal(*pool_list)
    assert ESCAPE not in _on_terminal(*pool_list, NO_COLOR="1").replace(b"\x1b[0m", b"").replace(b"\x1b[1m", b"")
    piped = subprocess.run([TRACKWAY, *pool_list], capture_output=True, check=True)
    assert ESCAPE not in piped.stdout
    assert b"local  yes" in piped.stdout


def test_hashing_and_upload_show_their_progress_on_a_terminal(fake: FakeTrackway, spec: Path) -> None:
    (spec.parent / "large.bin").write_bytes(bytes(8 << 20))
    printed = _on_terminal("train", "submit", "--config", str(spec), "--endpoint", fake.endpoint)
    assert b"Packing code" in printed or b"Uploading code" in printed
    assert fake.requests("SubmitRun")


def test_ctrl_c_while_watching_leaves_the_run_going(fake: FakeTrackway) -> None:
    fake.add_run(RUN, [("RunQueued", "QUEUED"), ("AttemptPlaced", "RUNNING")])
    whole, still = fake.WatchRun, threading.Event()

    def quiet_after_the_facts(request: Any, context: Any) -> Iterator[Any]:
        yield from whole(request, context)
        still.wait(30)

    fake.WatchRun = quiet_after_the_facts  # type: ignore[method-assign] # a run in the middle of its training
    command = [*HEARS_CTRL_C, TRACKWAY, "train", "watch", RUN, "--endpoint", fake.endpoint]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "RunQueued" in process.stdout.readline()
    assert "AttemptPlaced" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    still.set()
    assert process.returncode == 130
    assert f"trackway train watch {RUN}" in errors
    assert fake.requests("CancelRun") == []


def test_facts_reach_a_pipe_as_they_come(fake: FakeTrackway) -> None:
    fake.add_run(RUN, [("RunQueued", "QUEUED"), ("RunSucceeded", "SUCCEEDED")])
    whole, read = fake.WatchRun, threading.Event()

    def waits_for_the_reader(request: Any, context: Any) -> Iterator[Any]:
        for fact in whole(request, context):
            yield fact
            read.wait(30)

    fake.WatchRun = waits_for_the_reader  # type: ignore[method-assign] # the second fact only after the first was read
    command = [TRACKWAY, "train", "watch", RUN, "-o", "json", "--endpoint", fake.endpoint]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "RunQueued" in process.stdout.readline()
    read.set()
    rest, errors = process.communicate(timeout=20)
    assert "RunSucceeded" in rest
    assert process.returncode == 0, errors
