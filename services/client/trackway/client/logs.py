"""What an attempt's ranks print: from the agent while it remembers, else from the history."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trackway_common.codec import from_message
from trackway_common.errors import Fenced, NotFound, Unavailable
from trackway_proto.v1.agent_service_pb2 import TailLogsRequest, TailLogsResponse
from trackway_proto.v1.agent_service_pb2_grpc import AgentServiceStub
from trackway_proto.v1.history_service_pb2 import ListLogsRequest
from trackway_proto.v1.history_service_pb2_grpc import HistoryServiceStub

from trackway.client.calls import OutOfTime, stream
from trackway.client.connections import OBSERVER, TRAINER_AGENT, Connections
from trackway.client.patience import Patience
from trackway.client.resources import LogLine, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """Which lines."""

    run_id: str
    attempt: int = 0
    """0: the newest."""
    rank: int | None = None
    """None: all of them."""


def kept_lines(connections: Connections, query: LogQuery, look: Callable[[], Run]) -> Iterator[LogLine]:
    """Yield what was printed so far.

    Args:
        look: asks for the run.
    """
    tail, patience = _Tail(connections, query, follow=False), Patience()
    while True:
        try:
            return (yield from tail.segment())
        except OutOfTime:
            patience.reset()
        except (NotFound, Unavailable, Fenced) as error:
            if not tail.begun:
                return (yield from _from_history(connections, query, look))
            patience.bear(error)


def followed_lines(connections: Connections, query: LogQuery, look: Callable[[], Run]) -> Iterator[LogLine]:
    """Yield what is printed until the attempt has ended; waits for the attempt to begin."""
    tail, patience = _Tail(connections, query, follow=True), Patience()
    while True:
        try:
            return (yield from tail.segment())
        except OutOfTime:
            patience.reset()
        except NotFound as error:
            if tail.begun:
                patience.bear(error)
            elif look().ended:
                return (yield from _from_history(connections, query, look))
            else:
                patience.pause()
        except (Unavailable, Fenced) as error:
            patience.bear(error)


class _Tail:
    """How far the lines of one attempt were read; goes on behind the last one on any connection."""

    def __init__(self, connections: Connections, query: LogQuery, *, follow: bool) -> None:
        self._connections = connections
        self._request = TailLogsRequest(
            run_id=query.run_id, attempt=query.attempt, rank=query.rank, follow=follow, cursor=""
        )
        self.begun = False

    def segment(self) -> Iterator[LogLine]:
        """Yield lines of the first agent that knows the attempt; raises what the last one said when none does."""
        endpoints = self._connections.endpoints(TRAINER_AGENT)
        for endpoint in endpoints:
            try:
                return (yield from self._of(endpoint))
            except OutOfTime:
                raise
            except (NotFound, Unavailable):
                if self.begun or endpoint == endpoints[-1]:
                    raise

    def _of(self, endpoint: str) -> Iterator[LogLine]:
        agent = AgentServiceStub(self._connections.channel_at(endpoint))
        with self._connections.watched():
            for line in stream(agent.TailLogs, self._request):
                self._advance(line)
                yield from_message(line, LogLine)

    def _advance(self, line: TailLogsResponse) -> None:
        # The attempt is pinned: "the newest" must not become another one in the middle.
        self._request.attempt, self._request.cursor = line.attempt, line.cursor
        self.begun = True


def _from_history(connections: Connections, query: LogQuery, look: Callable[[], Run]) -> Iterator[LogLine]:
    attempt = query.attempt or look().attempt
    if attempt == 0:
        return
    with connections.watched():
        history = HistoryServiceStub(connections.channel(OBSERVER))
        request = ListLogsRequest(run_id=query.run_id, attempt=attempt, rank=query.rank)
        for line in stream(history.ListLogs, request):
            yield from_message(line, LogLine)
