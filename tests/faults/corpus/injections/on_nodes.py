"""Faults of nodes: the first one's CPUs are taken, so that the rank lands on a second one, which goes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.faults.corpus.injection import Injection, once_ready
from tests.faults.corpus.ray_nodes import SecondNode, cpus_taken
from tests.faults.corpus.scene import Scene
from tests.support.stack import wait_until

NOTICE_S = 2


class OnSecondNode:
    """Prepares the two nodes of one scene, and then hurts the second."""

    def __init__(self, hurt: Callable[[Scene, SecondNode], None]) -> None:
        self._hurt = hurt
        self._nodes: dict[int, SecondNode] = {}

    def before(self, scene: Scene) -> Mapping[str, Any]:
        scene.cleanup.enter_context(cpus_taken(scene.stack))
        node = SecondNode(scene.stack)
        scene.cleanup.callback(node.end)
        self._nodes[id(scene)] = node
        return {}

    def act(self, scene: Scene) -> None:
        self._hurt(scene, self._nodes[id(scene)])


def killed(scene: Scene, node: SecondNode) -> None:
    scene.send(signal.SIGKILL, node.raylet())


def frozen(scene: Scene, node: SecondNode) -> None:
    scene.send(signal.SIGSTOP, node.raylet())


def reclaimed(scene: Scene, node: SecondNode) -> None:
    """A notice; at its deadline the machine is taken."""
    raylet = node.raylet()
    node.drain(NOTICE_S)
    deadline = time.monotonic() + NOTICE_S
    wait_until(lambda: time.monotonic() > deadline, 60, what="the notice's deadline")
    scene.send(signal.SIGKILL, raylet)


def on_second_node(kind: str, hurt: Callable[[Scene, SecondNode], None], limit_s: float = 120.0) -> Injection:
    """A run of one rank that lands there."""
    nodes = OnSecondNode(hurt)
    return Injection(kind=kind, before=nodes.before, acts=(once_ready(nodes.act),), alone=True, limit_s=limit_s)


def all_taken(scene: Scene) -> Mapping[str, Any]:
    scene.cleanup.enter_context(cpus_taken(scene.stack))
    return {}


INJECTIONS: dict[str, Injection] = {
    "raylet-sigkill": on_second_node("wait", killed),
    "node-frozen": on_second_node("wait", frozen, limit_s=150.0),
    "spot-notice": on_second_node("wait", reclaimed),
    "preempted-and-device-oom": on_second_node("device-oom-when-told", reclaimed),
    "capacity-not-granted": Injection(before=all_taken, alone=True, limit_s=150.0),
}
