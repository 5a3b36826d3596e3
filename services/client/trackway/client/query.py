"""One read-only SELECT, and its rows."""

from __future__ import annotations

import json

from trackway_proto.v1.history_service_pb2 import QueryRequest
from trackway_proto.v1.history_service_pb2_grpc import HistoryServiceStub

from trackway.client.calls import LONG_S, stream
from trackway.client.resources import QueryResult


def query(history: HistoryServiceStub, sql: str, max_rows: int) -> QueryResult:
    """Return the rows of a SELECT over the contract views."""
    parts = list(stream(history.Query, QueryRequest(sql=sql, max_rows=max_rows), LONG_S))
    return QueryResult(
        columns=tuple(parts[0].columns) if parts else (),
        types=tuple(parts[0].types) if parts else (),
        rows=tuple(tuple(json.loads(row)) for part in parts for row in part.rows_json),
        truncated=any(part.truncated for part in parts),
        records_behind=max((part.records_behind for part in parts), default=0),
    )
