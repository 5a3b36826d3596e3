"""AgentService: what ranks print, what runs where, and a second look at what ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from trackway_common.callers import caller_of
from trackway_common.errors import CommandRejected, FieldViolation, NotFound, Unavailable
from trackway_common.ids import attempt_stream, is_uuid7
from trackway_common.rpc import Servable
from trackway_proto.v1 import agent_service_pb2, agent_service_pb2_grpc
from trackway_proto.v1.vocabulary_pb2 import TerminationReason

from trackway_trainer_agent.adapters.log_spool import LogSpool, LogSpools, SpooledLine
from trackway_trainer_agent.domain.attempt import AttemptState, Phase
from trackway_trainer_agent.shell.agent import Agent
from trackway_trainer_agent.shell.attempt_task import AttemptTask

FOLLOW_EVERY_S = 0.2
"""Between two looks into the spool of an attempt that is still printing."""


class AgentApi(agent_service_pb2_grpc.AgentServiceServicer):
    """Reads the agent and its spools; has it judge again what it judged before."""

    def __init__(self, spools: LogSpools) -> None:
        self._spools = spools
        self._followed: Agent | None = None

    def follow(self, agent: Agent) -> None:
        """Answer for this agent from now on; a server listens before its agent exists, which tells where it listens."""
        self._followed = agent

    @property
    def _agent(self) -> Agent:
        if self._followed is None:
            raise Unavailable("the agent is starting; ask again in a moment")
        return self._followed

    async def TailLogs(  # noqa: N802 - named by the .proto file
        self, request: agent_service_pb2.TailLogsRequest, context: Any
    ) -> AsyncIterator[agent_service_pb2.TailLogsResponse]:
        _check_run_id(request.run_id)
        attempt = request.attempt or self._newest(request.run_id)
        spool, cursor = self._spools.of(request.run_id, attempt), request.cursor
        rank = request.rank if request.HasField("rank") else None
        while True:
            # Asked before the spool is read: what is printed last is then read by the last look.
            over = not request.follow or self._is_over(request.run_id, attempt)
            for spooled in await asyncio.to_thread(_read, spool, cursor):
                cursor = spooled.cursor
                if rank is None or spooled.rank == rank:
                    yield _line(attempt, spooled)
            if over:
                return
            await asyncio.sleep(FOLLOW_EVERY_S)

    async def ReclassifyAttempt(  # noqa: N802 - named by the .proto file
        self, request: agent_service_pb2.ReclassifyAttemptRequest, context: Any
    ) -> agent_service_pb2.ReclassifyAttemptResponse:
        _check_run_id(request.run_id)
        look = await self._agent.judge.look_again(request.run_id, request.attempt, actor=caller_of(context))
        return agent_service_pb2.ReclassifyAttemptResponse(
            before=TerminationReason.Value(f"TERMINATION_REASON_{look.before.reason}"),
            version_before=look.before.classifier_version,
            reason=TerminationReason.Value(f"TERMINATION_REASON_{look.verdict.reason}"),
            classifier_version=look.verdict.classifier_version,
            confidence=look.verdict.confidence,
            cause=look.verdict.cause,
            recorded=look.recorded,
        )

    async def ListAttempts(  # noqa: N802 - named by the .proto file
        self, request: agent_service_pb2.ListAgentAttemptsRequest, context: Any
    ) -> agent_service_pb2.ListAgentAttemptsResponse:
        attempts = [_attempt(self._agent.state(stream), task) for stream, task in self._agent.attempts.items()]
        return agent_service_pb2.ListAgentAttemptsResponse(attempts=attempts)

    def _newest(self, run_id: str) -> int:
        known = [*self._spools.attempts(run_id), self._agent.newest_attempt(run_id) or 0]
        if max(known) == 0:
            raise NotFound(
                f"this agent knows no attempt of run {run_id!r}; `trackway attempt list` shows where they ran"
            )
        return max(known)

    def _is_over(self, run_id: str, attempt: int) -> bool:
        stream = attempt_stream(run_id, attempt)
        return stream not in self._agent.attempts and self._agent.state(stream).phase in {Phase.ENDED, Phase.PLACED}


def servable(api: AgentApi) -> Servable:
    """The service as a server takes it."""
    return Servable(agent_service_pb2_grpc.add_AgentServiceServicer_to_server, api, "trackway_proto.v1.AgentService")


def _check_run_id(run_id: str) -> None:
    """Run ids become folder names."""
    if not is_uuid7(run_id):
        violation = FieldViolation(field="run_id", description="the run's full UUID, as `trackway train list` shows it")
        raise CommandRejected(f"{run_id!r} is no run id", violations=(violation,))


def _read(spool: LogSpool, cursor: str) -> list[SpooledLine]:
    return list(spool.read(cursor))


def _line(attempt: int, spooled: SpooledLine) -> agent_service_pb2.TailLogsResponse:
    return agent_service_pb2.TailLogsResponse(
        attempt=attempt,
        rank=spooled.rank,
        at_ms=spooled.line.at_ms,
        stream=spooled.line.stream,
        text=spooled.line.text,
        step=spooled.line.step,
        cursor=spooled.cursor,
    )


def _attempt(state: AttemptState, task: AttemptTask) -> agent_service_pb2.AgentAttempt:
    last_steps = task.live.testimony.last_steps if task.live is not None else {}
    assignment = task.desk.assignment
    message = agent_service_pb2.AgentAttempt(
        run_id=assignment.run_id,
        attempt=assignment.attempt,
        state=state.phase.value,
        last_step=max(last_steps.values(), default=0),
        ranks=[
            agent_service_pb2.AgentRank(
                rank=rank.rank,
                node=rank.node,
                trainer_pid=rank.trainer_pid,
                last_step=last_steps.get(rank.rank, 0),
            )
            for rank in state.ranks
        ],
    )
    if state.started_at is not None:
        started_at = Timestamp()
        started_at.FromDatetime(state.started_at)
        message.started_at.CopyFrom(started_at)
    return message
