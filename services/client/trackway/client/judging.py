"""Asks the agent of an attempt to judge it again."""

from __future__ import annotations

from trackway_common.codec import from_message
from trackway_common.errors import CommandRejected, NotFound, Unavailable
from trackway_proto.v1.agent_service_pb2 import ReclassifyAttemptRequest
from trackway_proto.v1.agent_service_pb2_grpc import AgentServiceStub

from trackway.client.calls import call
from trackway.client.connections import TRAINER_AGENT, Connections
from trackway.client.resources import SecondLook


def second_look(connections: Connections, run_id: str, attempt: int) -> SecondLook:
    """Ask one agent after the other: only the one that ran the attempt may answer.

    Raises:
        TrackwayError: what the last one said.
    """
    request = ReclassifyAttemptRequest(run_id=run_id, attempt=attempt)
    endpoints = connections.endpoints(TRAINER_AGENT)
    for endpoint in endpoints:
        agent = AgentServiceStub(connections.channel_at(endpoint))
        try:
            return _read(call(agent.ReclassifyAttempt, request))
        except (NotFound, Unavailable, CommandRejected) as error:
            if endpoint == endpoints[-1] or not _may_be_elsewhere(error):
                raise
    raise Unavailable("no trainer-agent is up; `trackway status` shows the services")


def _read(answer: object) -> SecondLook:
    look: SecondLook = from_message(answer, SecondLook)
    return look


def _may_be_elsewhere(error: NotFound | Unavailable | CommandRejected) -> bool:
    return not isinstance(error, CommandRejected) or error.reason == "ANOTHER_AGENT" or isinstance(error, NotFound)
