"""``TrackwayClient``: every call that a user has, synchronous and typed.

Names may be written short: a run's id or a unique beginning of it, ``RUN/2`` for its second attempt,
``RUN/40`` for its newest checkpoint of step 40. Every call raises TrackwayError: CommandRejected when it
is refused, Unavailable when nobody answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import grpc
from google.protobuf.message import Message
from trackway_common.errors import CommandRejected
from trackway_common.events import RunPhase
from trackway_common.ids import uuid7
from trackway_proto.v1 import checkpoint_service_pb2 as checkpoints_pb
from trackway_proto.v1 import dataset_service_pb2 as datasets_pb
from trackway_proto.v1 import evaluation_service_pb2 as evaluations_pb
from trackway_proto.v1 import history_service_pb2 as history_pb
from trackway_proto.v1 import run_service_pb2 as runs_pb
from trackway_proto.v1.goodput_pb2 import GetGoodputRequest
from trackway_proto.v1.pool_service_pb2 import ListPoolsRequest
from trackway_proto.v1.vocabulary_pb2 import RunPhase as WirePhase

from trackway.client import resources
from trackway.client.blobs import download
from trackway.client.calls import LONG_S, QUICK_S, VERIFY_S, call
from trackway.client.channels import tls_credentials
from trackway.client.cloning import cloned_submission
from trackway.client.connections import SCHEDULER, Connections
from trackway.client.endpoints import scheduler_endpoint
from trackway.client.judging import second_look
from trackway.client.logs import LogQuery, followed_lines, kept_lines
from trackway.client.names import checkpoint_name, parse_attempt, run_id
from trackway.client.paging import A, Q, T, listed, read
from trackway.client.patience import Patience
from trackway.client.progress import SILENT, Progress
from trackway.client.query import query
from trackway.client.settings import read_settings
from trackway.client.stubs import Stubs
from trackway.client.submission import NO_OVERRIDES, Overrides, Submission, read_submission, submit
from trackway.client.watch import open_segments, watch

R = TypeVar("R")
M = TypeVar("M", bound=Message)


class TrackwayClient:
    """A connection to one Trackway; opens channels when they are first used.

    Args:
        endpoint: host:port of the scheduler; TRACKWAY_ENDPOINT when absent, else the local stack's.
        state: state folder of the local stack; TRACKWAY_STATE when absent, else the default one.
    """

    def __init__(self, endpoint: str | None = None, state: Path | str | None = None) -> None:
        settings = read_settings()
        folder = Path(state) if state else settings.state
        # A state folder that was named outright speaks louder than an endpoint of the environment.
        address = endpoint or ("" if state else settings.endpoint)
        self._services = Connections(lambda: scheduler_endpoint(address, folder), tls_credentials(settings))
        self._to = Stubs(self._services)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every channel."""
        self._services.close()

    def submit(
        self,
        config: Path | str,
        overrides: Overrides = NO_OVERRIDES,
        *,
        request_id: str = "",
        validate_only: bool = False,
        progress: Progress = SILENT,
    ) -> resources.Run:
        """Submit the run that a spec file describes; its code folder is archived and sent.

        Args:
            request_id: UUIDv7; drawn when empty. It becomes the run's id, and the same one again starts no second run.
            validate_only: resolve and check every input, start nothing.
        """
        return self._submit(read_submission(Path(config), overrides), request_id, validate_only, progress)

    def clone(
        self, run: str, overrides: Overrides = NO_OVERRIDES, *, request_id: str = "", validate_only: bool = False
    ) -> resources.Run:
        """Submit the inputs of an earlier run again, all pinned as they were; what is overridden differs."""
        submission = cloned_submission(self.get_run(run), overrides, self.blob)
        return self._submit(submission, request_id, validate_only, SILENT)

    def _submit(
        self, submission: Submission, request_id: str, validate_only: bool, progress: Progress
    ) -> resources.Run:
        request = runs_pb.SubmitRunRequest(request_id=request_id or uuid7(), validate_only=validate_only)
        with self._services.watched():
            answer = submit(self._services.channel(SCHEDULER), submission, request, progress)
        return read(answer, resources.Run)

    def get_run(self, run: str) -> resources.Run:
        """Return a run by its id, a unique beginning of it, or its resource name."""
        request = runs_pb.GetRunRequest(name=run)
        return self._ask(self._to.runs.GetRun, request, resources.Run)

    def list_runs(
        self, *, project: str = "-", phase: RunPhase = RunPhase.UNSPECIFIED, model_family: str = ""
    ) -> Iterator[resources.Run]:
        """Yield runs, newest first; ``-`` is every project and UNSPECIFIED every phase."""
        wire_phase = WirePhase.Value(f"RUN_PHASE_{phase}")
        request = runs_pb.ListRunsRequest(parent=f"projects/{project}", phase=wire_phase, model_family=model_family)
        return self._list(self._to.runs.ListRuns, request, lambda page: page.runs, resources.Run)

    def cancel(self, run: str, *, reason: str = "", request_id: str = "") -> resources.Run:
        """Ask a run to stop; returns at once, the run ends when its ranks have."""
        request = runs_pb.CancelRunRequest(name=run, request_id=request_id or uuid7(), reason=reason)
        return self._ask(self._to.runs.CancelRun, request, resources.Run)

    def release(self, run: str, *, reason: str, request_id: str = "", validate_only: bool = False) -> resources.Run:
        """Let a held run go on; returns it as it is then.

        Args:
            run: its name, id or a unique beginning of it.
            reason: what was done about what it was held for.
            request_id: UUIDv7; the same again asks for the same.
            validate_only: only check that it could be released.
        """
        request = runs_pb.ReleaseRunRequest(
            name=run, request_id=request_id or uuid7(), reason=reason, validate_only=validate_only
        )
        return self._ask(self._to.runs.ReleaseRun, request, resources.Run)

    def watch(self, run: str, cursor: str = "", patience: Patience | None = None) -> Iterator[resources.RunFact]:
        """Yield the run's facts until it has ended, across restarts of the service; none twice, none left out.

        Args:
            cursor: of a fact seen earlier, to go on behind it.
            patience: how long an outage may be; two minutes when absent.
        """
        segments = open_segments(self._services, run)
        return watch(segments, lambda: self.get_run(run).ended, patience or Patience(), cursor)

    def logs(self, run: str, *, rank: int | None = None, follow: bool = False) -> Iterator[resources.LogLine]:
        """Yield what the ranks of an attempt printed, oldest first.

        Args:
            run: ``RUN`` for its newest attempt, or ``RUN/ATTEMPT``.
            follow: wait for the attempt to begin, and go on until it has ended.
        """
        name = parse_attempt(run)
        query = LogQuery(run_id=self._run_id(name.run), attempt=name.attempt, rank=rank)
        lines = followed_lines if follow else kept_lines
        return lines(self._services, query, lambda: self.get_run(query.run_id))

    def attempts(self, run: str | None = None) -> Iterator[resources.Attempt]:
        """Yield attempts of one run or of all, newest first."""
        request = history_pb.ListAttemptsRequest(parent=self._parent(run))
        return self._list(self._to.history.ListAttempts, request, lambda page: page.attempts, resources.Attempt)

    def attempt(self, name: str) -> resources.Attempt:
        """Return one attempt, ``RUN/ATTEMPT``."""
        parsed = parse_attempt(name)
        if parsed.attempt == 0:
            raise CommandRejected(f"{name!r} names a run; write {name}/1 for its first attempt")
        request = history_pb.GetAttemptRequest(name=f"{self._run_id(parsed.run)}/{parsed.attempt}")
        return self._ask(self._to.history.GetAttempt, request, resources.Attempt)

    def reclassify(self, name: str) -> resources.SecondLook:
        """Have an ended attempt, ``RUN/ATTEMPT``, judged by its agent's classifier of today."""
        parsed = parse_attempt(name)
        if parsed.attempt == 0:
            raise CommandRejected(f"{name!r} names a run; write {name}/1 for its first attempt")
        return second_look(self._services, self._run_id(parsed.run), parsed.attempt)

    def explain(self, name: str) -> resources.Explanation:
        """Explain an attempt, ``RUN/ATTEMPT``, or a run's newest one, ``RUN``."""
        parsed = parse_attempt(name)
        run = self._run_id(parsed.run)
        request = history_pb.ExplainRequest(name=f"{run}/{parsed.attempt}" if parsed.attempt else run)
        return self._ask(self._to.history.Explain, request, resources.Explanation, LONG_S)

    def goodput(self, name: str) -> resources.GoodputAnswer:
        """Return where the time of a run's attempts went, or of one, ``RUN/ATTEMPT``; of running ones so far."""
        parsed = parse_attempt(name)
        run = self._run_id(parsed.run)
        request = GetGoodputRequest(name=f"{run}/{parsed.attempt}" if parsed.attempt else run)
        return self._ask(self._to.history.GetGoodput, request, resources.GoodputAnswer, LONG_S)

    def query(self, sql: str, *, max_rows: int = 0) -> resources.QueryResult:
        """Run one SELECT over the contract views; at most 10,000 rows, 1,000 when 0."""
        with self._services.watched():
            return query(self._to.history, sql, max_rows)

    def register_dataset(self, manifest: bytes, *, project: str, request_id: str = "") -> resources.Dataset:
        """Register a manifest (canonical JSON) under its name; the same one again changes nothing."""
        request = datasets_pb.RegisterDatasetRequest(
            request_id=request_id or uuid7(), project=project, manifest=manifest
        )
        return self._ask(self._to.datasets.RegisterDataset, request, resources.Dataset, LONG_S)

    def dataset(self, name: str) -> resources.Dataset:
        """Return a snapshot with its manifest; the newest where the name holds no digest.

        Args:
            name: ``projects/PROJECT/datasets/NAME[@DIGEST]``, or ``NAME[@DIGEST]`` where one project has it.
        """
        request = datasets_pb.GetDatasetRequest(name=name)
        return self._ask(self._to.datasets.GetDataset, request, resources.Dataset)

    def datasets(self, *, project: str = "-") -> Iterator[resources.Dataset]:
        """Yield the registered snapshots."""
        request = datasets_pb.ListDatasetsRequest(parent=f"projects/{project}")
        return self._list(self._to.datasets.ListDatasets, request, lambda page: page.datasets, resources.Dataset)

    def checkpoints(self, run: str) -> Iterator[resources.Checkpoint]:
        """Yield a run's checkpoints, newest commit first."""
        request = checkpoints_pb.ListCheckpointsRequest(parent=self._run_id(run))
        return self._list(
            self._to.checkpoints.ListCheckpoints,
            request,
            lambda page: page.checkpoints,
            resources.Checkpoint,
        )

    def checkpoint(self, name: str) -> resources.Checkpoint:
        """Return a checkpoint, ``RUN/STEP`` or ``RUN/ID``."""
        request = checkpoints_pb.GetCheckpointRequest(name=checkpoint_name(name, self._run_id))
        return self._ask(self._to.checkpoints.GetCheckpoint, request, resources.Checkpoint)

    def verify_checkpoint(self, name: str) -> resources.CheckpointCheck:
        """Have every byte of a checkpoint read and compared with its manifest."""
        request = checkpoints_pb.VerifyCheckpointRequest(name=checkpoint_name(name, self._run_id))
        return self._ask(
            self._to.checkpoints.VerifyCheckpoint,
            request,
            resources.CheckpointCheck,
            VERIFY_S,
        )

    def evaluations(self, run: str | None = None) -> Iterator[resources.Evaluation]:
        """Yield evaluations of one run or of all, newest first."""
        request = evaluations_pb.ListEvaluationsRequest(parent=self._parent(run))
        return self._list(
            self._to.evaluations.ListEvaluations,
            request,
            lambda page: page.evaluations,
            resources.Evaluation,
        )

    def evaluation(self, name: str) -> resources.Evaluation:
        """Return an evaluation by its id, a unique beginning of it, or its resource name."""
        request = evaluations_pb.GetEvaluationRequest(name=name)
        return self._ask(self._to.evaluations.GetEvaluation, request, resources.Evaluation)

    def blob(self, digest: str) -> bytes:
        """Return the stored bytes of a digest that a fact names, such as an evaluation's shard; they are verified."""
        with self._services.watched():
            return download(self._services.channel(SCHEDULER), digest)

    def pools(self) -> Iterator[resources.Pool]:
        """Yield the pools of the catalogue and what they offer."""
        request = ListPoolsRequest()
        return self._list(self._to.pools.ListPools, request, lambda page: page.pools, resources.Pool)

    def _run_id(self, run: str) -> str:
        return run_id(run, lambda short: self.get_run(short).run_id)

    def _parent(self, run: str | None) -> str:
        return self._run_id(run) if run else "projects/-"

    def _ask(
        self, method: grpc.UnaryUnaryMultiCallable[R, M], request: R, kind: type[T], timeout_s: float = QUICK_S
    ) -> T:
        with self._services.watched():
            return read(call(method, request, timeout_s), kind)

    def _list(
        self,
        method: grpc.UnaryUnaryMultiCallable[Q, A],
        request: Q,
        items: Callable[[A], Iterable[Message]],
        kind: type[T],
    ) -> Iterator[T]:
        with self._services.watched():
            yield from listed(lambda page: call(method, page), request, items, kind)
