"""Who is alive, by the heartbeats on the commands topic.

Silence is measured in *log time*: it passes only while records arrive, at most a second for each, and this process
itself sends one a second. So an outage of the log, or a pause of this process, makes nobody look dead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trackway_common.clock import Clock
from trackway_common.event_log import EventLog
from trackway_common.events import AgentHeartbeat, SchedulerHeartbeat, ServiceHeartbeat
from trackway_common.fact_reader import RequestReader
from trackway_common.service import with_backoff
from trackway_common.topics import COMMANDS

LONGEST_GAP_S = 1.0
FORGET_AFTER_S = 600.0
"""Services that were silent for longer leave the directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSeen:
    """An agent's last word."""

    heartbeat: AgentHeartbeat
    at_log_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSeen:
    """A service's last word."""

    heartbeat: ServiceHeartbeat
    at_s: float
    """Monotonic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSeen:
    """The active scheduler's last word."""

    heartbeat: SchedulerHeartbeat
    at_log_s: float


class Fleet:
    """Folds heartbeats from the topic's end on: only recent ones matter."""

    def __init__(self, event_log: EventLog, clock: Clock, writer_id: str, on_change: Callable[[], None]) -> None:
        self._log = event_log
        self._clock = clock
        self._writer_id = writer_id
        self._on_change = on_change
        self._agents: dict[str, AgentSeen] = {}
        self._services: dict[tuple[str, str], ServiceSeen] = {}
        self._other: SchedulerSeen | None = None
        self._log_s = 0.0
        self._read_at_s: float | None = None

    async def run(self) -> None:
        """Tail for ever; belongs in the service's task group."""
        ends: dict[int, int] = {}

        async def find_ends() -> None:
            ends.update(await self._log.end_offsets(COMMANDS))

        await with_backoff(find_ends, self._clock, what=COMMANDS)
        self._read_at_s = self._clock.monotonic()
        async for requests in RequestReader(self._log, positions=ends).read():
            for request in requests:
                self._pass_time()
                self._take(request.body)

    def log_s(self) -> float:
        """Log time that has passed since the start."""
        return self._log_s

    def agents(self) -> tuple[AgentSeen, ...]:
        """Every agent that was heard from, by id."""
        return tuple(self._agents[agent_id] for agent_id in sorted(self._agents))

    def agent(self, agent_id: str) -> AgentSeen | None:
        """An agent's last word; None when it was not heard from since the start."""
        return self._agents.get(agent_id)

    def agent_silence_s(self, agent_id: str) -> float:
        """Log time since the agent was heard; since the start when it never was."""
        seen = self._agents.get(agent_id)
        return self._log_s - (seen.at_log_s if seen else 0.0)

    def other_scheduler(self) -> SchedulerSeen | None:
        """Another scheduler that said it is active."""
        return self._other

    def other_silence_s(self) -> float:
        """Log time since another scheduler said it is active; since the start when none did."""
        return self._log_s - (self._other.at_log_s if self._other else 0.0)

    def services(self) -> tuple[tuple[ServiceHeartbeat, float], ...]:
        """Services and the seconds since each was heard."""
        now = self._clock.monotonic()
        recent = {key: seen for key, seen in self._services.items() if now - seen.at_s < FORGET_AFTER_S}
        self._services = recent
        return tuple((seen.heartbeat, now - seen.at_s) for _, seen in sorted(recent.items()))

    def _pass_time(self) -> None:
        now = self._clock.monotonic()
        before = now if self._read_at_s is None else self._read_at_s
        self._log_s += min(now - before, LONGEST_GAP_S)
        self._read_at_s = now

    def _take(self, body: object) -> None:
        match body:
            case AgentHeartbeat():
                before = self._agents.get(body.agent_id)
                self._agents[body.agent_id] = AgentSeen(heartbeat=body, at_log_s=self._log_s)
                if before is None or before.heartbeat != body:
                    self._on_change()
            case ServiceHeartbeat():
                seen = ServiceSeen(heartbeat=body, at_s=self._clock.monotonic())
                self._services[body.service, body.instance] = seen
            case SchedulerHeartbeat():
                if body.writer_id != self._writer_id:
                    self._other = SchedulerSeen(heartbeat=body, at_log_s=self._log_s)
            case _:
                return
