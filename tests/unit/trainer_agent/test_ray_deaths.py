"""What Ray's words about a dead actor mean; texts as Ray 2.60 writes them."""

from __future__ import annotations

import pytest
from trackway_trainer_agent.adapters.ray_deaths import cause_of_death
from trackway_trainer_agent.domain.observations import SubstrateCause as Cause

VANISHED = """The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail:
Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the process was
killed by the OOM killer due to high memory usage, (2) ray stop --force was called"""
SAID = {
    VANISHED: Cause.UNEXPLAINED,
    "": Cause.UNEXPLAINED,
    "no living actor has the rank's name": Cause.UNEXPLAINED,
    "Worker exit type: INTENDED_USER_EXIT Worker exit detail: exit_actor() is called.": Cause.KILLED_BY_US,
    'actor_died_error_context { reason: RAY_KILL error_message: "killed by `ray.kill`" }': Cause.KILLED_BY_US,
    "node_death_info { reason: UNEXPECTED_TERMINATION } reason: NODE_DIED": Cause.NODE_DIED,
    "node_death_info { reason: AUTOSCALER_DRAIN_PREEMPTED } reason: NODE_DIED": Cause.PREEMPTED,
    "node_death_info { reason: AUTOSCALER_DRAIN_IDLE } reason: NODE_DIED": Cause.DRAINED,
    "The actor died because its node has died. Node Id: 7ce9": Cause.NODE_DIED,
    "oom_context { error_message: Task was killed due to the node running low on memory }": Cause.OUT_OF_MEMORY,
    "Worker exit type: NODE_OUT_OF_MEMORY": Cause.OUT_OF_MEMORY,
}


@pytest.mark.parametrize("said", SAID)
def test_cause(said: str) -> None:
    assert cause_of_death(said) is SAID[said]
