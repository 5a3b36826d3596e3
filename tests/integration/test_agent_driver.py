"""The Ray driver's process: it never outlives its agent."""

from __future__ import annotations

import socket
import subprocess
import sys


def test_a_driver_that_waits_for_a_head_ends_with_its_agent() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "trackway_trainer_agent.driver", "127.0.0.1:9", "trackway"]
        driver = subprocess.Popen(command, stdin=theirs, stderr=subprocess.DEVNULL)
    try:
        ours.settimeout(0.5)
        try:
            assert ours.recv(1) != b"", "it ended before its agent did"
        except TimeoutError:
            assert driver.poll() is None
        ours.close()
        assert driver.wait(20) == 0
    finally:
        driver.kill()
        driver.wait()
