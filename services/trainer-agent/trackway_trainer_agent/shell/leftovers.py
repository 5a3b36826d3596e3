"""What an agent before this one left of an attempt that has ended: its gang, and captures nobody resolved."""

from __future__ import annotations

import asyncio
import logging

from trackway_trainer_agent.domain.attempt import AttemptState, SavePhase
from trackway_trainer_agent.domain.commands import AbandonCheckpoint
from trackway_trainer_agent.gangs import Gangs
from trackway_trainer_agent.shell.attempt_desk import AttemptDesk
from trackway_trainer_agent.shell.bring_up import found, patiently, remove
from trackway_trainer_agent.shell.cluster_pulse import ClusterPulse
from trackway_trainer_agent.shell.live_gang import LiveGang
from trackway_trainer_agent.shell.warm_gangs import WarmGangs

log = logging.getLogger(__name__)


async def clear_leftovers(
    desk: AttemptDesk, gangs: Gangs, warm: WarmGangs, pulse: ClusterPulse, *, fenced_off: bool
) -> None:
    """Finish what can be finished of the attempt's captures, give up the rest, remove the gang.

    Once the next attempt's fence is up nothing can be finished, and its actors may already be that attempt's.
    """
    existing = await patiently(gangs.existing, desk.clock, desk.timing.retry_s)
    granted = found(desk)
    gang = granted.watched.gang if granted is not None else desk.assignment.gang
    if not fenced_off and granted is not None and unresolved(desk.state) and gang in existing:
        live = LiveGang(desk, gangs, pulse, granted)
        async with asyncio.TaskGroup() as tasks:
            requests = tasks.create_task(desk.commits.run(desk.timing.retry_s), name="commit requests")
            live.begin(tasks)
            await live.observations()
            await live.settle()
            requests.cancel()
    if gang in existing:
        await remove(desk, gangs, warm, gang)
    await _give_up_rest(desk)


def unresolved(state: AttemptState) -> frozenset[str]:
    """Captures of the receipt that no later fact speaks of."""
    ended, saves = state.ended, state.saves
    named = ended.captures_in_flight if ended is not None else ()
    return frozenset(nonce for nonce in named if saves.get(nonce) is not SavePhase.ABANDONED)


async def _give_up_rest(desk: AttemptDesk) -> None:
    """What the commit log doesn't have by now was lost with the actor that held it."""
    missing = await desk.commits.wait_committed(unresolved(desk.state), 0.0)
    for nonce in sorted(missing):
        command = AbandonCheckpoint(step=0, nonce=nonce, why="the actor that held it is gone", at=desk.clock.now())
        await desk.execute(command, f"abandoned/{nonce}")
