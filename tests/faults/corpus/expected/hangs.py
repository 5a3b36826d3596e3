"""Nothing dies and nothing goes on; and losses that are no numbers."""

from __future__ import annotations

from collections.abc import Iterator

from trackway_common.events import NextMove
from trackway_common.events import TerminationReason as Reason

from tests.faults.corpus.label import By, Label

HANG, NUMERIC = "hang", "numeric"
STALLS = (
    ("loader-hangs", "The loader waits for a batch that nobody will bring.", By.PROGRAM),
    ("deadlock", "Two threads wait for each other's lock.", By.PROGRAM),
    ("infinite-loop", "A step computes for ever.", By.PROGRAM),
    ("rank-frozen", "SIGSTOP to the only rank: it can't even tell its stacks.", By.HARNESS),
)
DIVERGENCES = (
    ("loss-is-nan", "The program reports a loss that is NaN, and goes on."),
    ("guard-raises", "The program's own check raises FloatingPointError: loss is nan."),
    ("anomaly-detected", "torch.autograd.detect_anomaly finds NaN in a backward pass and raises."),
)


def labels() -> Iterator[Label]:
    """Every label of the two groups."""
    for name, does, by in STALLS:
        yield Label(name=name, group=HANG, does=does, reason=Reason.STALLED, move=NextMove.RETRY, by=by)
    yield Label(
        name="rank-misses-collective",
        group=HANG,
        does="Rank 1 of 2 sleeps in its own code; rank 0 waits for it in an all-reduce without a time limit.",
        reason=Reason.COLLECTIVE_TIMEOUT,
        move=NextMove.RETRY,
        ranks=2,
        blamed=1,
    )
    yield Label(
        name="collective-gives-up",
        group=HANG,
        does="As before, but gloo's own limit of two seconds makes rank 0 raise.",
        reason=Reason.COLLECTIVE_TIMEOUT,
        move=NextMove.RETRY,
        ranks=2,
    )
    yield Label(
        name="watchdog-aborts",
        group=HANG,
        does="Prints what NCCL's watchdog prints about a collective's timeout, then aborts: SIGABRT.",
        reason=Reason.COLLECTIVE_TIMEOUT,
        move=NextMove.RETRY,
    )
    for name, does in DIVERGENCES:
        yield Label(name=name, group=NUMERIC, does=does, reason=Reason.NUMERIC_DIVERGENCE, move=NextMove.RETRY)
