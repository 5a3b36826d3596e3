"""A second Ray node on this machine, and somebody who keeps the first one's CPUs so that ranks land on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
from trackway.local.ray_head import ray_env, without_ray_address
from trackway.local.state import read_endpoints

from tests.support.stack import CPUS, Stack


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


@contextmanager
def cpus_taken(stack: Stack) -> Iterator[None]:
    """Keep every CPU that the cluster has now."""
    holder = hands(stack, "hold", str(CPUS))
    try:
        yield
    finally:
        holder.communicate(timeout=30)


class SecondNode:
    """A node of its own; its ranks die with its raylet."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        command = [sys.executable, "-m", "tests.faults.corpus.ray_node", address(stack)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=environment(stack), start_new_session=True, **pipes)
        assert self._process.stdout is not None
        self.node_id = self._process.stdout.readline().strip()
        assert self.node_id, "the second node did not start"

    def raylet(self) -> psutil.Process:
        """Its raylet."""
        below = psutil.Process(self._process.pid).children(recursive=True)
        return next(process for process in below if process.name() == "raylet")

    def drain(self, seconds: int) -> None:
        """Give a spot notice."""
        command = [sys.executable, "-m", "tests.faults.corpus.ray_hands", address(self._stack), "drain"]
        command += [f"{self.node_id}:{seconds}"]
        subprocess.run(command, env=environment(self._stack), check=True, capture_output=True, timeout=60)

    def end(self) -> None:
        """Nothing of it stays."""
        for process in psutil.Process(self._process.pid).children(recursive=True):
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self._process.kill()
        self._process.wait()
