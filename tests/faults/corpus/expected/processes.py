"""A process dies of a signal: a rank's program, its launcher, its actor."""

from __future__ import annotations

from collections.abc import Iterator

from trackway_common.events import NextMove
from trackway_common.events import TerminationReason as Reason

from tests.faults.corpus.label import By, Label

CRASH, KILL = "crash", "kill"
CRASHES = (
    ("null-pointer", "Native code reads address 0: SIGSEGV."),
    ("native-stack-overflow", "A thread recurses in native code beyond its stack: SIGSEGV."),
    ("abort", "Native code calls abort(): SIGABRT."),
    ("bus-error", "A mapped file is cut short behind the mapping: SIGBUS."),
    ("illegal-instruction", "Executes an instruction that the CPU does not have: SIGILL."),
    ("crash-behind-shell", "A shell runs the program, which dies of SIGSEGV: the shell exits with 139."),
)


def labels() -> Iterator[Label]:
    """Every label of the two groups."""
    for name, does in CRASHES:
        yield Label(name=name, group=CRASH, does=does, reason=Reason.PROCESS_CRASH, move=NextMove.RETRY)
    yield _kill("sigkill-one-rank", "SIGKILL to rank 1 of 2; rank 0 finds its peer gone.", ranks=2, blamed=1)
    yield _kill("sigkill-all-ranks", "SIGKILL to both ranks at once.", ranks=2)
    yield _kill("sigterm-one-rank", "SIGTERM to rank 1 of 2 from somebody who says nothing.", ranks=2, blamed=1)
    yield _kill("actor-sigkill", "SIGKILL to the actor that supervises the rank.")
    yield _kill("actor-removed", "Somebody else calls ray.kill on the actor.")
    yield Label(
        name="launcher-sigkill",
        group=KILL,
        does="SIGKILL to the launcher between actor and program: the program's status is lost with it.",
        reason=Reason.UNKNOWN,
        move=NextMove.RETRY,
        by=By.HARNESS,
    )


def _kill(name: str, does: str, *, ranks: int = 1, blamed: int | None = None) -> Label:
    return Label(
        name=name,
        group=KILL,
        does=does,
        reason=Reason.UNKNOWN_KILL,
        move=NextMove.RETRY,
        by=By.HARNESS,
        ranks=ranks,
        blamed=blamed,
    )
