"""What the program runs on fails: storage, network, devices, nodes."""

from __future__ import annotations

from collections.abc import Iterator

from trackway_common.events import NextMove
from trackway_common.events import TerminationReason as Reason

from tests.faults.corpus.label import By, Label, Need

STORAGE, NETWORK, DEVICE, NODE = "storage", "network", "device", "node"
MOUNT = frozenset({Need.ROOT, Need.MOUNT})
NODES = frozenset({Need.SECOND_NODE, Need.STACK_ALONE})


def labels() -> Iterator[Label]:
    """Every label of the four groups."""
    yield from _storage()
    yield from _network()
    yield Label(
        name="device-ecc-error",
        group=DEVICE,
        does="RuntimeError with CUDA's words for an uncorrectable ECC error.",
        reason=Reason.DEVICE_HARDWARE,
        move=NextMove.RETRY,
    )
    yield from _nodes()


def _storage() -> Iterator[Label]:
    full = {"group": STORAGE, "reason": Reason.STORAGE_FULL, "move": NextMove.HOLD, "needs": MOUNT}
    transient = {"group": STORAGE, "reason": Reason.STORAGE_TRANSIENT, "move": NextMove.RETRY}
    yield Label(name="disk-full", does="The program fills a tmpfs of 1 MiB: ENOSPC.", by=By.HARNESS, **full)
    yield Label(name="shared-memory-full", does="/dev/shm of the program's own mount namespace is full.", **full)
    yield Label(
        name="store-eio-at-start",
        does="The store gives EIO for the dataset's manifest while the rank is prepared.",
        by=By.HARNESS,
        needs=MOUNT,
        **transient,
    )
    yield Label(
        name="data-eio",
        does="Reading a file of the dataset gives EIO; the file itself is whole.",
        by=By.HARNESS,
        needs=MOUNT,
        **transient,
    )
    yield Label(
        name="object-store-503", does="An object store answers 503 SlowDown; the program's client raises.", **transient
    )


def _network() -> Iterator[Label]:
    apart = {"group": NETWORK, "reason": Reason.RENDEZVOUS_FAILED, "move": NextMove.RETRY, "ranks": 2}
    yield Label(name="rendezvous-port-taken", does="Another process listens on MASTER_PORT.", blamed=0, **apart)
    yield Label(name="rendezvous-times-out", does="Rank 1 never joins; rank 0 gives up after its time limit.", **apart)
    yield Label(name="rendezvous-not-listening", does="Rank 0 never listens; rank 1 gives up connecting.", **apart)
    yield Label(
        name="connections-cut",
        group=NETWORK,
        does="Every connection between the ranks is ended while both live: each finds its peer gone.",
        reason=Reason.NETWORK_FABRIC,
        move=NextMove.RETRY,
        ranks=2,
    )


def _nodes() -> Iterator[Label]:
    lost = {"group": NODE, "reason": Reason.NODE_LOST, "move": NextMove.RETRY, "by": By.HARNESS}
    yield Label(name="raylet-sigkill", does="SIGKILL to the raylet of the rank's node.", needs=NODES, **lost)
    yield Label(name="node-frozen", does="SIGSTOP to the raylet of the rank's node: no heartbeat.", needs=NODES, **lost)
    yield Label(
        name="head-lost",
        does="SIGKILL to the Ray head and all its processes; another cluster answers at its address.",
        needs=frozenset({Need.STACK_ALONE}),
        **lost,
    )
    yield Label(
        name="spot-notice",
        group=NODE,
        does="Ray is told that the rank's node is preempted in two seconds, and then it is.",
        reason=Reason.PREEMPTED_SPOT,
        move=NextMove.RETRY,
        by=By.HARNESS,
        needs=NODES,
    )
    yield Label(
        name="capacity-not-granted",
        group=NODE,
        does="Somebody else took the CPUs that the pool had: Ray does not grant the placement in time.",
        reason=Reason.CAPACITY_TIMEOUT,
        move=NextMove.RETRY,
        by=By.HARNESS,
        needs=frozenset({Need.STACK_ALONE}),
    )
    yield Label(
        name="code-archive-damaged",
        group=NODE,
        does="The stored code archive does not match its digest: no rank can be started.",
        reason=Reason.LAUNCH_FAILED,
        move=NextMove.RETRY,
        by=By.HARNESS,
    )
