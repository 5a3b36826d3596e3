"""Several things at once: what came first, or what outranks, is the reason; the rest is context."""

from __future__ import annotations

from collections.abc import Iterator

from trackway_common.events import NextMove
from trackway_common.events import TerminationReason as Reason

from tests.faults.corpus.expected.surroundings import MOUNT, NODES
from tests.faults.corpus.label import By, Label

GROUP = "combination"


def labels() -> Iterator[Label]:
    """Every label of the group."""
    yield Label(
        name="device-oom-and-resets",
        group=GROUP,
        does="Rank 1 of 2 raises torch.OutOfMemoryError; rank 0 raises that its peer closed the connection.",
        reason=Reason.DEVICE_OOM,
        move=NextMove.STOP,
        ranks=2,
        blamed=1,
    )
    yield Label(
        name="disk-full-and-resets",
        group=GROUP,
        does="Rank 1 of 2 fills its disk; rank 0 raises that its peer closed the connection.",
        reason=Reason.STORAGE_FULL,
        move=NextMove.HOLD,
        by=By.HARNESS,
        needs=MOUNT,
        ranks=2,
        blamed=1,
    )
    yield Label(
        name="reset-before-its-cause",
        group=GROUP,
        does="Rank 1's connections break; once rank 0 has raised that, rank 1 raises its own error.",
        reason=Reason.USER_CODE_ERROR,
        move=NextMove.STOP,
        ranks=2,
        blamed=1,
    )
    yield Label(
        name="preempted-and-device-oom",
        group=GROUP,
        does="The rank's node gets a spot notice; the program prints an OOM while the node goes.",
        reason=Reason.PREEMPTED_SPOT,
        move=NextMove.RETRY,
        by=By.HARNESS,
        needs=NODES,
    )
    yield Label(
        name="cancelled-and-host-oom",
        group=GROUP,
        does="Somebody cancels the run; on SIGTERM the program raises MemoryError.",
        reason=Reason.CANCELLED_BY_USER,
        move=NextMove.STOP,
        ledger="cancel",
        by=By.HARNESS,
    )
    yield Label(
        name="old-traceback-then-kill",
        group=GROUP,
        does="The program prints the traceback of an error that it handled; later SIGKILL ends it.",
        reason=Reason.UNKNOWN_KILL,
        move=NextMove.RETRY,
        by=By.HARNESS,
    )
    yield Label(
        name="misleading-lines",
        group=GROUP,
        does="Prints advice about CUDA out of memory and full disks, then raises ValueError.",
        reason=Reason.USER_CODE_ERROR,
        move=NextMove.STOP,
    )
    yield Label(
        name="crash-while-stopped",
        group=GROUP,
        does="Rank 1 of 2 raises; rank 0, told to stop, dies of SIGSEGV in its handler.",
        reason=Reason.USER_CODE_ERROR,
        move=NextMove.STOP,
        ranks=2,
        blamed=1,
    )
    yield Label(
        name="handled-exception",
        group=GROUP,
        does="The program prints the traceback of an error that it handled, and finishes with code 0.",
        reason=Reason.COMPLETED,
        move=NextMove.EVALUATE,
    )
