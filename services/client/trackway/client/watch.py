"""Watches a run over any number of connections: no fact is missed and none comes twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC

from trackway_common.errors import Fenced, Unavailable
from trackway_common.events import RunPhase
from trackway_proto.v1.run_service_pb2 import WatchRunRequest, WatchRunResponse
from trackway_proto.v1.run_service_pb2_grpc import RunServiceStub
from trackway_proto.v1.vocabulary_pb2 import RunPhase as WirePhase

from trackway.client.calls import OutOfTime, stream
from trackway.client.connections import SCHEDULER, Connections
from trackway.client.patience import Patience
from trackway.client.resources import ENDED_PHASES, RunFact

OpenSegment = Callable[[str], Iterator[RunFact]]
"""Yields the facts behind a cursor until the run has ended or the connection has."""


def watch(
    open_segment: OpenSegment, has_ended: Callable[[], bool], patience: Patience, cursor: str = ""
) -> Iterator[RunFact]:
    """Yield a run's facts behind the cursor until the run has ended.

    Args:
        has_ended: asks the service; only used when a segment ends before the run is seen to.
    Raises:
        Unavailable: an outage outlasted the patience.
    """
    seen = _Seen(cursor)
    while True:
        try:
            yield from _segment(open_segment, seen, patience)
            if seen.phase in ENDED_PHASES or has_ended():
                return
            patience.reset()
            patience.pause()
        except (Unavailable, Fenced) as error:
            patience.bear(error)


def open_segments(services: Connections, name: str) -> OpenSegment:
    """Return what opens a connection's worth of facts, each time at the scheduler's endpoint of then."""

    def segment(cursor: str) -> Iterator[RunFact]:
        with services.watched():
            runs = RunServiceStub(services.channel(SCHEDULER))
            for message in stream(runs.WatchRun, WatchRunRequest(name=name, cursor=cursor)):
                yield _fact(message)

    return segment


class _Seen:
    """How far a watch got. The sequences catch a service that repeats what stands before the cursor."""

    def __init__(self, cursor: str) -> None:
        self.cursor = cursor
        self.phase = RunPhase.UNSPECIFIED
        self._last: dict[str, int] = {}

    def takes(self, fact: RunFact) -> bool:
        repeated = 0 < fact.sequence <= self._last.get(fact.stream, 0)
        if not repeated:
            self._last[fact.stream] = fact.sequence
            self.cursor, self.phase = fact.cursor, fact.phase
        return not repeated


def _segment(open_segment: OpenSegment, seen: _Seen, patience: Patience) -> Iterator[RunFact]:
    try:
        for fact in open_segment(seen.cursor):
            patience.reset()
            if seen.takes(fact):
                yield fact
    except OutOfTime:
        # A quiet run: the segment is over, the watch goes on.
        return


def _fact(message: WatchRunResponse) -> RunFact:
    return RunFact(
        cursor=message.cursor,
        fact=message.fact,
        stream=message.stream,
        sequence=message.sequence,
        occurred_at=message.occurred_at.ToDatetime(tzinfo=UTC) if message.HasField("occurred_at") else None,
        fields=json.loads(message.fields_json or "{}"),
        phase=RunPhase(WirePhase.Name(message.phase).removeprefix("RUN_PHASE_")),
        summary=message.summary,
    )
