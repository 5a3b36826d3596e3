"""What a rank said before it was stopped is its own, whatever the agent's clock says."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trackway_common.events import TerminationReason as Reason
from trackway_trainer_agent.domain.classify import classify
from trackway_trainer_agent.domain.observations import RankExit
from trackway_trainer_agent.shell.reading import rank_exit
from trackway_trainer_agent.worker.records import TrainerExited

from tests.unit.trainer_agent.ends import T0, cascade
from tests.unit.trainer_agent.reports import reset_by_peer

AN_HOUR_MS = 3_600_000


def told(*, raised_ms: int | None, stopped_ms: int | None, skew_ms: int) -> RankExit:
    """A rank that ended at 1 s of its node's clock, which is this far from the agent's."""
    at_ms = T0 + skew_ms
    error = None
    if raised_ms is not None:
        error = replace(reset_by_peer(at_ms + raised_ms), exception_type="ValueError", message="bad shape")
    seen = TrainerExited(
        exit_code=1 if error else None,
        signal=None if error else "SIGSEGV",
        error=error,
        stderr_tail=(),
        last_step=7,
        peak_memory_bytes=0,
        oom_kills=0,
        stop_requested=stopped_ms is not None,
        stopped_at_ms=None if stopped_ms is None else at_ms + stopped_ms,
        started_at_ms=at_ms,
        ended_at_ms=at_ms + 1_000,
        monotonic_ns=1_000_000_000,
    )
    return rank_exit(0, "n1", seen)


@pytest.mark.parametrize("skew_ms", [-AN_HOUR_MS, 0, AN_HOUR_MS])
@pytest.mark.parametrize(
    ("raised_ms", "stopped_ms", "reason"),
    [
        (500, 700, Reason.USER_CODE_ERROR),
        (900, 700, Reason.NETWORK_FABRIC),
        (None, None, Reason.PROCESS_CRASH),
        (None, 700, Reason.NETWORK_FABRIC),
    ],
    ids=["raised, then stopped", "stopped, then raised", "crashed, never stopped", "stopped"],
)
def test_only_the_nodes_own_clock_orders_stop_and_error(
    raised_ms: int | None, stopped_ms: int | None, reason: Reason, skew_ms: int
):
    seen = (told(raised_ms=raised_ms, stopped_ms=stopped_ms, skew_ms=skew_ms), replace(cascade(1), node="n2"))
    assert classify(2, seen).reason is reason
