"""Announces the agent and what its cluster offers, once a second."""

from __future__ import annotations

import logging
from collections.abc import Callable

from trackway_common.clock import Clock
from trackway_common.errors import Unavailable
from trackway_common.events import AgentHeartbeat
from trackway_common.request_sender import RequestSender

from trackway_trainer_agent.shell.cluster_pulse import ClusterPulse

log = logging.getLogger(__name__)

BEAT_S = 1.0


async def announce(
    sender: RequestSender,
    clock: Clock,
    pulse: ClusterPulse,
    itself: AgentHeartbeat,
    live: Callable[[], tuple[str, ...]],
) -> None:
    """Send heartbeats for ever. A cluster that can't be reached offers nothing, but its agent lives.

    Args:
        itself: what never changes; capacity and attempts are filled in.
    """
    while True:
        try:
            await sender.send(heartbeat(itself, pulse, live()), key=itself.agent_id)
        except Unavailable as error:
            log.info("heartbeat not sent", extra={"error": str(error)})
        await clock.sleep(BEAT_S)


def heartbeat(itself: AgentHeartbeat, pulse: ClusterPulse, attempts: tuple[str, ...]) -> AgentHeartbeat:
    """The heartbeat that is due now."""
    view = pulse.view
    offered = view if pulse.reachable else None
    return AgentHeartbeat(
        agent_id=itself.agent_id,
        endpoint=itself.endpoint,
        pool=itself.pool,
        cluster_id=view.cluster_id if view is not None else "",
        cpus=offered.cpus if offered is not None else 0.0,
        accelerators=offered.accelerators if offered is not None else 0,
        memory_bytes=offered.memory_bytes if offered is not None else 0,
        environment_digest=itself.environment_digest,
        python_version=itself.python_version,
        attempts=attempts,
        nodes=len(offered.nodes) if offered is not None else 0,
        largest_node_memory_bytes=offered.largest_node_memory_bytes if offered is not None else 0,
    )
