"""Ends that somebody wanted, and the control plane's own deaths, which end nothing."""

from __future__ import annotations

from collections.abc import Iterator

from trackway_common.events import NextMove
from trackway_common.events import TerminationReason as Reason

from tests.faults.corpus.label import By, Label, Need

POLICY, CONTROL_PLANE = "policy", "control plane"
CANCELS = (
    ("cancelled-in-step", "Somebody cancels the run while it steps."),
    ("cancelled-at-start", "Somebody cancels the run before its program has reported anything."),
    ("cancelled-deaf", "Somebody cancels the run; the program ignores SIGTERM until it is killed."),
)
DEATHS = (
    ("agent-killed", "SIGKILL to the agent while every rank lives."),
    ("agent-driver-killed", "SIGKILL to the agent's connection to Ray while every rank lives."),
    ("scheduler-killed", "SIGKILL to the scheduler while every rank lives."),
    ("log-killed", "SIGKILL to Kafka while every rank lives."),
)


def labels() -> Iterator[Label]:
    """Every label of the two groups."""
    for name, does in CANCELS:
        yield Label(
            name=name,
            group=POLICY,
            does=does,
            reason=Reason.CANCELLED_BY_USER,
            move=NextMove.STOP,
            ledger="cancel",
            by=By.HARNESS,
        )
    yield Label(
        name="deadline-passed",
        group=POLICY,
        does="The run's deadline passes while it steps.",
        reason=Reason.DEADLINE_EXCEEDED,
        move=NextMove.STOP,
    )
    yield Label(
        name="wall-time-over",
        group=POLICY,
        does="The attempt's wall time is over while it steps.",
        reason=Reason.WALLTIME,
        move=NextMove.RETRY,
    )
    for name, does in DEATHS:
        yield Label(
            name=name,
            group=CONTROL_PLANE,
            does=f"{does} The attempt is not ended by it.",
            reason=Reason.COMPLETED,
            move=NextMove.EVALUATE,
            by=By.HARNESS,
            needs=frozenset({Need.STACK_ALONE}),
        )
