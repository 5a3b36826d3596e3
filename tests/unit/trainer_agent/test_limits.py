"""Wall time and deadline end an attempt by our own intent."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from trackway_common import events as e
from trackway_common.deadlines import deadline_of
from trackway_common.events import TerminationReason as Reason
from trackway_common.testing.run_facts import RUN_ID, run_spec

from tests.unit.trainer_agent.world import World


async def submit(world: World, limits: e.Limits) -> None:
    spec = replace(run_spec(), limits=limits)
    await world.order(e.RunSubmitted(run_id=RUN_ID, spec=spec, submitted_at=world.clock.now()))


@pytest.mark.parametrize(
    ("limits", "reason", "why"),
    [
        (e.Limits(wall_time_s=3.0), Reason.WALLTIME, "wall time of 3 s"),
        (e.Limits(deadline_s=3.0), Reason.DEADLINE_EXCEEDED, "deadline"),
        (e.Limits(wall_time_s=500.0, deadline_s=3.0), Reason.DEADLINE_EXCEEDED, "deadline"),
    ],
)
async def test_a_limit_stops_the_ranks(world: World, limits: e.Limits, reason: Reason, why: str):
    async with world.agent():
        await submit(world, limits)
        await world.place(submit=False)
        await world.fact(e.AttemptStarted)
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is reason
    assert why in ended.cause
    assert "AttemptStopping" in world.names()


async def test_a_deadline_ends_an_attempt_that_waits_for_its_placement(world: World):
    async with world.agent():
        await submit(world, e.Limits(deadline=world.clock.now() - timedelta(seconds=1)))
        await world.place(submit=False)
        ended = await world.fact(e.AttemptEnded)
    assert ended.reason is Reason.DEADLINE_EXCEEDED


def test_a_deadline_counts_from_the_submission(world: World):
    now = world.clock.now()
    assert deadline_of(e.Limits(deadline_s=60.0), now) == now + timedelta(seconds=60)
    assert deadline_of(e.Limits(deadline=now), None) == now
    assert deadline_of(e.Limits(), now) is None
    assert deadline_of(None, now) is None
