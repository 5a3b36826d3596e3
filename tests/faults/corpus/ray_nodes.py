"""A second Ray node on this machine, and somebody who keeps the first one's CPUs so that ranks land on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from trackway.local.ray_head import OBJECT_STORE_BYTES, ray_env, without_ray_address
from trackway.local.state import read_endpoints

from tests.support.stack import CPUS, Stack, wait_until

UP_S = 60.0
MANY_NODES = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}
"""The stack's head keeps to itself (`trackway.local.ray_head`); Ray's command refuses to join one that does."""
RAY = Path(sys.executable).with_name("ray")


def environment(stack: Stack) -> dict[str, str]:
    """What a process needs to join the stack's cluster."""
    return without_ray_address(os.environ) | ray_env(stack.folder)


def address(stack: Stack) -> str:
    """host:port of the head."""
    return read_endpoints(stack.state)["ray"]


def hands(stack: Stack, *order: str) -> subprocess.Popen[str]:
    """Somebody else on the cluster; returns once the order was carried out."""
    command = [sys.executable, "-m", "tests.faults.corpus.ray_hands", address(stack), *order]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environment(stack), **pipes)
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said, f"{order} was not carried out"
    return process


def second_node_id(stack: Stack) -> str:
    """Ray's id of the node that is not the head."""
    command = [sys.executable, "-m", "tests.faults.corpus.ray_hands", address(stack), "find", "worker"]
    done = subprocess.run(command, env=environment(stack), check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.split()[-1]


@contextmanager
def cpus_taken(stack: Stack) -> Iterator[None]:
    """Keep every CPU that the cluster has now."""
    holder = hands(stack, "hold", str(CPUS))
    try:
        yield
    finally:
        holder.communicate(timeout=30)


class SecondNode:
    """A raylet of its own; its ranks die with it."""

    def __init__(self, stack: Stack, log: Path) -> None:
        self._stack = stack
        command = [str(RAY), "start", f"--address={address(stack)}", "--block", "--num-cpus=1"]
        command += ["--node-ip-address=127.0.0.1", f"--object-store-memory={OBJECT_STORE_BYTES}"]
        command += ["--min-worker-port=0", "--max-worker-port=0", "--disable-usage-stats"]
        with log.open("w") as file:
            self._process = subprocess.Popen(
                command, env=environment(stack) | MANY_NODES, stdout=file, stderr=file, start_new_session=True
            )
        started = "Ray runtime started"
        wait_until(lambda: started in log.read_text() or self._ended(log), UP_S, what="a second node")

    def raylet(self) -> psutil.Process:
        """Its raylet."""
        below = psutil.Process(self._process.pid).children(recursive=True)
        return next(process for process in below if process.name() == "raylet")

    def drain(self, seconds: int) -> None:
        """Give a spot notice."""
        node_id = second_node_id(self._stack)
        command = [str(RAY), "drain-node", f"--address={address(self._stack)}", f"--node-id={node_id}"]
        command += ["--reason=DRAIN_NODE_REASON_PREEMPTION", "--reason-message=spot capacity was reclaimed"]
        command += [f"--deadline-remaining-seconds={seconds}"]
        subprocess.run(command, env=environment(self._stack), check=True, capture_output=True, timeout=60)

    def end(self) -> None:
        """Nothing of it stays."""
        below = psutil.Process(self._process.pid).children(recursive=True) if self._process.poll() is None else []
        for process in below:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self._process.kill()
        self._process.wait()

    def _ended(self, log: Path) -> bool:
        assert self._process.poll() is None, log.read_text()[-2000:]
        return False
