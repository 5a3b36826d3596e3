"""HistoryService: what happened, read from the read model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from trackway_common.clock import Clock
from trackway_common.codec import fact_fields, fill_message
from trackway_common.errors import NotFound, Unavailable
from trackway_common.history.explain import as_markdown, as_postmortem, as_text
from trackway_common.rpc import Servable
from trackway_proto.v1 import goodput_pb2 as goodput_pb
from trackway_proto.v1 import history_service_pb2 as pb
from trackway_proto.v1 import history_service_pb2_grpc
from trackway_proto.v1.explanation_pb2 import ExplanationParts

from trackway_observer.entrypoints.messages import attempt_message, struct
from trackway_observer.entrypoints.names import (
    Scope,
    decode_token,
    encode_token,
    page_size,
    parse_attempt,
    parse_name,
    parse_parent,
)
from trackway_observer.history.explaining import Explaining
from trackway_observer.history.freshness import EVERYTHING, FACTS, Freshness
from trackway_observer.history.logs import log_lines
from trackway_observer.history.people_sql import PeopleSql
from trackway_observer.history.reader import HistoryReader, Place, ReadModel, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryParts:
    """What serving the history needs."""

    database: ReadModel
    people: PeopleSql
    freshness: Freshness
    clock: Clock
    blob: Callable[[str], bytes] | None = None
    """Gives the bytes of a digest, for evidence that was too long for its fact; None: it is only named."""
    ready: asyncio.Event
    """Set once the database has this build's schema; calls before it are told to come back."""


class HistoryApi(history_service_pb2_grpc.HistoryServiceServicer):
    """Reads; changes nothing."""

    def __init__(self, parts: HistoryParts) -> None:
        self._database = parts.database
        self._reader = HistoryReader(parts.database)
        self._explaining = Explaining(parts.database, parts.clock, parts.blob)
        self._people = parts.people
        self._freshness = parts.freshness
        self._ready = parts.ready

    async def GetAttempt(  # noqa: N802 - named by the .proto file
        self, request: pb.GetAttemptRequest, context: Any
    ) -> pb.Attempt:
        wanted = parse_attempt(request.name)
        await self._catch_up()
        run_id = await self._run_id(wanted.scope)
        record = await self._reader.attempt(run_id, wanted.attempt or 0)
        return attempt_message(record, await self._reader.checkpoint_slots([run_id]))

    async def ListAttempts(  # noqa: N802 - named by the .proto file
        self, request: pb.ListAttemptsRequest, context: Any
    ) -> pb.ListAttemptsResponse:
        scope, size, after = (
            parse_parent(request.parent),
            page_size(request.page_size),
            decode_token(request.page_token),
        )
        behind = await self._catch_up()
        run_id = await self._run_id(scope) if scope.run else ""
        found = await self._reader.attempts(run_id=run_id, project=scope.project, after=after, limit=size + 1)
        page = found[:size]
        slots = await self._reader.checkpoint_slots(record["run_id"] for record in page) if page else {}
        return pb.ListAttemptsResponse(
            attempts=[attempt_message(record, slots) for record in page],
            next_page_token=encode_token(_place(page[-1])) if len(found) > size else "",
            records_behind=behind,
        )

    async def Explain(  # noqa: N802 - named by the .proto file
        self, request: pb.ExplainRequest, context: Any
    ) -> pb.Explanation:
        wanted = parse_name(request.name)
        behind = await self._catch_up()
        explanation = await self._explaining.explain(await self._run_id(wanted.scope), wanted.attempt)
        return pb.Explanation(
            name=explanation.name,
            text=as_text(explanation),
            markdown=as_markdown(explanation),
            detail=struct(fact_fields(explanation)),
            records_behind=behind,
            postmortem=as_postmortem(explanation),
            parts=fill_message(ExplanationParts(), explanation),
        )

    async def GetGoodput(  # noqa: N802 - named by the .proto file
        self, request: goodput_pb.GetGoodputRequest, context: Any
    ) -> goodput_pb.GetGoodputResponse:
        wanted = parse_name(request.name)
        behind = await self._catch_up()
        found = await self._explaining.goodput(await self._run_id(wanted.scope), wanted.attempt)
        return goodput_pb.GetGoodputResponse(goodput=fill_message(goodput_pb.Goodput(), found), records_behind=behind)

    async def Query(  # noqa: N802 - named by the .proto file
        self, request: pb.QueryRequest, context: Any
    ) -> AsyncIterator[pb.QueryResponse]:
        behind = await self._catch_up(EVERYTHING)
        async for page in self._people.run(request.sql, request.max_rows):
            yield pb.QueryResponse(
                columns=page.columns,
                types=page.types,
                rows_json=page.rows_json,
                truncated=page.truncated,
                records_behind=behind,
            )

    async def ListLogs(  # noqa: N802 - named by the .proto file
        self, request: pb.ListLogsRequest, context: Any
    ) -> AsyncIterator[pb.HistoryLogLine]:
        wanted = parse_name(request.run_id)
        await self._catch_up(EVERYTHING)
        run_id = await self._run_id(wanted.scope)
        newest = await self._reader.newest_attempt(run_id)
        attempt = request.attempt or wanted.attempt or newest
        if attempt > newest:
            raise NotFound(f"run {run_id} has no attempt {attempt} yet")
        rank = request.rank if request.HasField("rank") else None
        async for line in log_lines(self._database, run_id, attempt, rank):
            yield pb.HistoryLogLine(
                attempt=line.attempt,
                rank=line.rank,
                at_ms=line.at_ms,
                stream=line.stream,
                text=line.text,
                step=line.step,
            )

    async def _catch_up(self, read: Sequence[str] = FACTS) -> int:
        if not self._ready.is_set():
            raise Unavailable("the read model is being prepared; ask again in a moment")
        return await self._freshness.catch_up(read)

    async def _run_id(self, scope: Scope) -> str:
        return await self._reader.run_id(scope.run, scope.project)


def history_servable(parts: HistoryParts) -> Servable:
    """The service as a server registers it."""
    return Servable(
        history_service_pb2_grpc.add_HistoryServiceServicer_to_server,
        HistoryApi(parts),
        "trackway_proto.v1.HistoryService",
    )


def _place(record: Record) -> Place:
    return Place(queued_us=record["place"], run_id=record["run_id"], attempt=record["attempt"])
