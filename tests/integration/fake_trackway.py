"""A Trackway that answers from memory: every service of the client's on one port, with outages on demand.

Only a double of the services: it judges nothing and keeps what a test gives it.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from concurrent import futures
from typing import Any

import grpc
from trackway_common.errors import NotFound, TrackwayError
from trackway_common.rpc_errors import DETAILS_KEY, status_code, to_status
from trackway_proto.v1 import (
    agent_service_pb2,
    agent_service_pb2_grpc,
    blob_service_pb2,
    blob_service_pb2_grpc,
    checkpoint_service_pb2,
    checkpoint_service_pb2_grpc,
    dataset_service_pb2,
    dataset_service_pb2_grpc,
    directory_service_pb2,
    directory_service_pb2_grpc,
    evaluation_service_pb2,
    evaluation_service_pb2_grpc,
    history_service_pb2,
    history_service_pb2_grpc,
    pool_service_pb2,
    pool_service_pb2_grpc,
    run_service_pb2,
    run_service_pb2_grpc,
)
from trackway_proto.v1.vocabulary_pb2 import RunPhase


class FakeTrackway:
    """What the services know, and what they were asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.errors: dict[str, TrackwayError] = {}
        """Raised by the method of that name."""
        self.runs: dict[str, run_service_pb2.Run] = {}
        self.facts: dict[str, list[run_service_pb2.WatchRunResponse]] = {}
        self.drops: deque[int] = deque()
        """Facts after which each following watch is cut; empty: none is."""
        self.blobs: dict[str, bytes] = {}
        self.log_lines: list[agent_service_pb2.TailLogsResponse] = []
        self.answers: dict[str, Any] = {}
        """What the read methods answer, by name; a list is streamed or paged."""
        self.services: list[directory_service_pb2.ServiceEndpoint] = []
        self._server: grpc.Server | None = None
        self.endpoint = ""

    def start(self, address: str = "127.0.0.1:0") -> None:
        """Serve; an address of an earlier start is served again."""
        self._server = grpc.server(futures.ThreadPoolExecutor(8), options=(("grpc.so_reuseport", 0),))
        for module, name in _SERVICES:
            getattr(module, f"add_{name}Servicer_to_server")(_servicer(self, module, name), self._server)
        port = self._server.add_insecure_port(address)
        self._server.start()
        self.endpoint = f"127.0.0.1:{port}"

    def stop(self) -> None:
        """Cut every call off, at once."""
        if self._server:
            self._server.stop(None).wait()

    def requests(self, method: str) -> list[Any]:
        """What one method was asked, in order."""
        return [request for name, request in self.calls if name == method]

    def add_run(self, run_id: str, facts: list[tuple[str, str]]) -> None:
        """Know a run by its facts: names, and the phase after each; the last phase is where it stands."""
        self.facts[run_id] = [_fact(run_id, i, name, phase) for i, (name, phase) in enumerate(facts, 1)]
        phase = RunPhase.Value(f"RUN_PHASE_{facts[-1][1]}")
        self.runs[run_id] = run_service_pb2.Run(name=f"projects/p/runs/{run_id}", run_id=run_id, phase=phase, attempt=1)

    # RunService

    def SubmitRun(self, request: run_service_pb2.SubmitRunRequest, context: Any) -> run_service_pb2.Run:
        queued = [("RunSubmitted", "SUBMITTED"), ("RunQueued", "QUEUED")]
        self.add_run(request.request_id, self.answers.get("facts", queued))
        return self.answers.get("SubmitRun") or self.runs[request.request_id]

    def GetRun(self, request: run_service_pb2.GetRunRequest, context: Any) -> run_service_pb2.Run:
        found = [run for run_id, run in self.runs.items() if run_id.startswith(request.name)]
        if len(found) != 1:
            raise NotFound(f"there is no run {request.name!r}; `trackway train list` shows those there are")
        return found[0]

    def CancelRun(self, request: run_service_pb2.CancelRunRequest, context: Any) -> run_service_pb2.Run:
        run = self.GetRun(run_service_pb2.GetRunRequest(name=request.name), context)
        run.phase = RunPhase.RUN_PHASE_CANCELLED
        return run

    def ReleaseRun(self, request: run_service_pb2.ReleaseRunRequest, context: Any) -> run_service_pb2.Run:
        run = self.GetRun(run_service_pb2.GetRunRequest(name=request.name), context)
        run.phase = run.phase if request.validate_only else RunPhase.RUN_PHASE_QUEUED
        return run

    def WatchRun(
        self, request: run_service_pb2.WatchRunRequest, context: Any
    ) -> Iterator[run_service_pb2.WatchRunResponse]:
        limit = self.drops.popleft() if self.drops else None
        for sent, fact in enumerate(self.facts[request.name][int(request.cursor or 0) :]):
            if sent == limit:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")
            yield fact

    # AgentService

    def TailLogs(
        self, request: agent_service_pb2.TailLogsRequest, context: Any
    ) -> Iterator[agent_service_pb2.TailLogsResponse]:
        if not self.log_lines:
            raise NotFound("this agent knows no such attempt")
        limit = self.drops.popleft() if self.drops else None
        for sent, line in enumerate(self.log_lines[int(request.cursor or 0) :]):
            if sent == limit:
                context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")
            if not request.HasField("rank") or request.rank == line.rank:
                yield line

    # BlobService

    def HasBlobs(self, request: blob_service_pb2.HasBlobsRequest, context: Any) -> blob_service_pb2.HasBlobsResponse:
        return blob_service_pb2.HasBlobsResponse(present=[d for d in request.digests if d in self.blobs])

    def PutBlob(
        self, request: Iterator[blob_service_pb2.PutBlobRequest], context: Any
    ) -> blob_service_pb2.PutBlobResponse:
        chunks = [message.chunk for message in request]
        assert all(len(chunk) <= 1 << 20 for chunk in chunks)
        data = b"".join(chunks)
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return blob_service_pb2.PutBlobResponse(digest=digest, size_bytes=len(data))

    def GetBlob(
        self, request: blob_service_pb2.GetBlobRequest, context: Any
    ) -> Iterator[blob_service_pb2.GetBlobResponse]:
        if request.digest not in self.blobs:
            raise NotFound(f"there is no blob {request.digest}")
        data = self.blobs[request.digest]
        for start in range(0, len(data), 1 << 20):
            yield blob_service_pb2.GetBlobResponse(chunk=data[start : start + (1 << 20)])

    # DirectoryService

    def ListServices(self, request: Any, context: Any) -> directory_service_pb2.ListServicesResponse:
        if not self.services:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no directory here")
        return directory_service_pb2.ListServicesResponse(services=self.services)

    # What only reads: from ``answers``.

    def ListRuns(self, request: run_service_pb2.ListRunsRequest, context: Any) -> run_service_pb2.ListRunsResponse:
        runs, start = list(self.runs.values()), int(request.page_token or 0)
        page = runs[start : start + 2]
        more = str(start + 2) if start + 2 < len(runs) else ""
        return run_service_pb2.ListRunsResponse(runs=page, next_page_token=more)

    def __getattr__(self, name: str) -> Any:
        if name not in _READS:
            raise AttributeError(name)

        def answer(request: Any, context: Any) -> Any:
            if name not in self.answers:
                raise NotFound(f"{name}: there is no such thing")
            return self.answers[name]

        return answer


_SERVICES = (
    (run_service_pb2_grpc, "RunService"),
    (agent_service_pb2_grpc, "AgentService"),
    (blob_service_pb2_grpc, "BlobService"),
    (checkpoint_service_pb2_grpc, "CheckpointService"),
    (dataset_service_pb2_grpc, "DatasetService"),
    (directory_service_pb2_grpc, "DirectoryService"),
    (evaluation_service_pb2_grpc, "EvaluationService"),
    (history_service_pb2_grpc, "HistoryService"),
    (pool_service_pb2_grpc, "PoolService"),
)
_READS = frozenset(
    method
    for module in (
        agent_service_pb2,
        checkpoint_service_pb2,
        dataset_service_pb2,
        evaluation_service_pb2,
        history_service_pb2,
        pool_service_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods_by_name
)


def _servicer(fake: FakeTrackway, module: Any, name: str) -> Any:
    """Every method of a service, recorded, with errors told as the real services tell them."""
    base = getattr(module, f"{name}Servicer")
    methods = [method for method in vars(base) if not method.startswith("_")]
    return type(name, (base,), {method: _method(fake, method) for method in methods})()


def _method(fake: FakeTrackway, name: str) -> Any:
    def prepared(request: Any) -> Any:
        fake.calls.append((name, request))
        if error := fake.errors.get(name):
            raise error
        return getattr(fake, name)

    def unary(_: Any, request: Any, context: Any) -> Any:
        try:
            return prepared(request)(request, context)
        except TrackwayError as error:
            _abort(context, error)

    def streaming(_: Any, request: Any, context: Any) -> Iterator[Any]:
        try:
            yield from prepared(request)(request, context)
        except TrackwayError as error:
            _abort(context, error)

    return streaming if name in {"WatchRun", "TailLogs", "Query", "ListLogs", "GetBlob"} else unary


def _abort(context: Any, error: TrackwayError) -> None:
    context.set_trailing_metadata(((DETAILS_KEY, to_status(error).SerializeToString()),))
    context.abort(status_code(error), str(error))


def _fact(run_id: str, sequence: int, name: str, phase: str) -> run_service_pb2.WatchRunResponse:
    fact = run_service_pb2.WatchRunResponse(
        cursor=str(sequence),
        fact=name,
        stream=f"runs/{run_id}",
        sequence=sequence,
        fields_json=f'{{"number": {sequence}}}',
        phase=RunPhase.Value(f"RUN_PHASE_{phase}"),
        summary=f"{name} happened",
    )
    fact.occurred_at.FromSeconds(1_700_000_000 + sequence)
    return fact
