"""Memory runs out, on the device (raised: there is none here) or on the host (really).

The host's can be raised by half without a word in the spec; what helps on a device has to be declared as tunable.
"""

from __future__ import annotations

from collections.abc import Iterator

from trackway_common.events import NextMove
from trackway_common.events import TerminationReason as Reason

from tests.faults.corpus.label import By, Label, Need

DEVICE, HOST = "device memory", "host memory"
CGROUP = frozenset({Need.ROOT, Need.CGROUP})
DEVICE_STOPS = (
    ("device-oom-in-script", "A script raises torch.OutOfMemoryError: only its printed traceback says so."),
    ("device-oom-wrapped", "The program catches torch.OutOfMemoryError and raises RuntimeError from it."),
    ("cublas-alloc-failed", "RuntimeError with CUBLAS_STATUS_ALLOC_FAILED, as cuBLAS says it."),
    ("device-oom-in-native-code", "C++ prints 'CUDA error: out of memory' and aborts: SIGABRT, no exception."),
)
HOST_BY_HARNESS = (
    ("cgroup-kills-trainer", "The trainer outgrows a memory cgroup of its own; the kernel kills it."),
    (
        "cgroup-kills-in-container",
        "Actor and trainer share a memory cgroup, as in a container, and outgrow it.",
    ),
    (
        "cgroup-kills-loader-worker",
        "The kernel kills a loader worker in the cgroup; the trainer raises it.",
    ),
    (
        "cgroup-kills-behind-shell",
        "A shell runs the program, the kernel kills it: the shell exits with 137.",
    ),
)


def labels() -> Iterator[Label]:
    """Every label of the two groups."""
    yield Label(
        name="device-oom-in-step",
        group=DEVICE,
        does="torch.OutOfMemoryError in a step; the spec declares the micro-batch as tunable, so it can be halved.",
        reason=Reason.DEVICE_OOM,
        move=NextMove.RETRY,
    )
    for name, does in DEVICE_STOPS:
        yield Label(
            name=name,
            group=DEVICE,
            does=f"{does} Nothing is tunable.",
            reason=Reason.DEVICE_OOM,
            move=NextMove.STOP,
        )
    yield Label(
        name="address-space-limit",
        group=HOST,
        does="RLIMIT_AS refuses an allocation: MemoryError, which the process itself writes down.",
        reason=Reason.HOST_OOM,
        move=NextMove.RETRY,
    )
    for name, does in HOST_BY_HARNESS:
        yield Label(
            name=name,
            group=HOST,
            does=does,
            reason=Reason.HOST_OOM,
            move=NextMove.RETRY,
            by=By.HARNESS,
            needs=CGROUP,
        )
