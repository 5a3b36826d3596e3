"""An attempt's clocks are those of the rank that everybody waited for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from trackway_common import events as e
from trackway_common.rank_protocol.phases import Phases
from trackway_trainer_agent.domain.phases import attempt_phases
from trackway_trainer_agent.worker.records import PhasesMeasured

from tests.unit.trainer_agent.reports import captured, first_step
from tests.unit.trainer_agent.world import World

AT = datetime(2026, 1, 1, tzinfo=UTC)


def clocks(rank: int, *, wait: float, stall: float = 0.0, restore: float = 0.0, at_s: float = 0.0) -> e.PhaseSeconds:
    return e.PhaseSeconds(
        rank=rank,
        restore_seconds=restore,
        data_wait_seconds=wait,
        checkpoint_stall_seconds=stall,
        step_seconds=100.0 - wait - stall,
        measured_at=AT + timedelta(seconds=at_s),
    )


def test_the_rank_that_waited_longest_counts_as_a_whole() -> None:
    fast, slow = clocks(0, wait=1.0, stall=2.0, restore=9.0, at_s=3.0), clocks(1, wait=20.0, restore=4.0, at_s=1.0)
    phases = attempt_phases([fast, slow])
    assert phases is not None
    assert (phases.rank, phases.data_wait_seconds, phases.checkpoint_stall_seconds) == (1, 20.0, 0.0)
    assert phases.step_seconds == 80.0
    assert phases.restore_seconds == 9.0
    assert phases.measured_at == slow.measured_at


def test_without_a_session_nothing_is_known() -> None:
    assert attempt_phases([]) is None
    assert attempt_phases([None, None]) is None
    assert attempt_phases([None, clocks(1, wait=1.0)]) is not None


def measured(step_s: float, wait_s: float, at_ms: int) -> PhasesMeasured:
    return PhasesMeasured(phases=Phases(data_wait_seconds=wait_s, step_seconds=step_s), at_ms=at_ms)


async def test_captures_and_the_receipt_say_where_the_time_went(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).tell(first_step())
            world.rank(rank).phases = measured(10.0 - rank, 1.0 + rank, 1_000)
            world.rank(rank).tell(captured(phases=world.rank(rank).phases))
        capture = await world.fact(e.CheckpointStarted)
        world.rank(0).phases = measured(20.0, 1.5, 2_000)
        for rank in (0, 1):
            world.rank(rank).exit(signal="SIGKILL")
        ended = await world.fact(e.AttemptEnded)
    assert (capture.phases.rank, capture.phases.data_wait_seconds, capture.phases.step_seconds) == (1, 2.0, 9.0)
    assert ended.phases.rank == 1
    assert ended.last_progress_at == datetime.fromtimestamp(2.0, UTC)


async def test_a_program_without_a_session_measures_nothing(world: World) -> None:
    async with world.agent():
        await world.place()
        await world.fact(e.AttemptStarted)
        for rank in (0, 1):
            world.rank(rank).exit(0)
        ended = await world.fact(e.AttemptEnded)
    assert ended.phases is None
    assert ended.last_progress_at is None
