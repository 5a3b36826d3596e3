"""RunService: submit, look, watch, cancel, release."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from trackway_common.callers import caller_of
from trackway_common.codec import fact_json, fact_name
from trackway_common.commit import CommandContext, UnknownFact
from trackway_common.errors import CommandRejected, FieldViolation, NotFound
from trackway_common.events import CodeRef, RunPhase
from trackway_common.ids import run_stream
from trackway_proto.v1 import run_service_pb2 as pb
from trackway_proto.v1.run_service_pb2_grpc import RunServiceServicer

from trackway_scheduler.domain.commands import CancelRun, ReleaseRun
from trackway_scheduler.domain.names import find_run, project_of
from trackway_scheduler.domain.outside import last_committed
from trackway_scheduler.domain.releases import release
from trackway_scheduler.domain.spec import Submission
from trackway_scheduler.domain.state import ENDED, RunState
from trackway_scheduler.domain.summaries import summary
from trackway_scheduler.entrypoints.messages import phase_of, run_message, timestamp, wire_phase
from trackway_scheduler.entrypoints.paging import newest_first, page
from trackway_scheduler.shell.journal import Cursor, Entry, parse_cursor
from trackway_scheduler.shell.opening import Opening, Parts
from trackway_scheduler.shell.submission import Order


class RunServicer(RunServiceServicer):
    """Reads are answered by any scheduler that has read the log; the rest by the active one."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening

    async def SubmitRun(  # noqa: N802 - named by the .proto file
        self, request: pb.SubmitRunRequest, context: Any
    ) -> pb.Run:
        return self._message(await self._parts.submissions.submit(self._order(request, caller_of(context))))

    async def GetRun(  # noqa: N802 - named by the .proto file
        self, request: pb.GetRunRequest, context: Any
    ) -> pb.Run:
        return self._message(self._find(request.name))

    async def ListRuns(  # noqa: N802 - named by the .proto file
        self, request: pb.ListRunsRequest, context: Any
    ) -> pb.ListRunsResponse:
        project, phase = project_of(request.parent, "runs"), phase_of(request.phase)
        chosen = [
            run
            for run in self._parts.records.runs()
            if project in {None, run.project}
            and phase in {RunPhase.UNSPECIFIED, run.phase}
            and request.model_family in {"", run.model_family}
        ]
        filters = (project or "-", phase.value, request.model_family)
        listed = page(chosen, _newest_first, size=request.page_size, token=request.page_token, filters=filters)
        return pb.ListRunsResponse(runs=[self._message(run) for run in listed.items], next_page_token=listed.next_token)

    async def CancelRun(  # noqa: N802 - named by the .proto file
        self, request: pb.CancelRunRequest, context: Any
    ) -> pb.Run:
        run, caller = self._find(request.name), caller_of(context)
        _require_request_id(request.request_id)
        command = CancelRun(actor=caller, reason=request.reason[:500], at=self._parts.clock.now())
        asked = CommandContext(command_id=request.request_id, actor=caller, correlation_id=run.run_id)
        await self._parts.records.perform(run_stream(run.run_id), command, asked)
        return self._message(self._find(run.run_id))

    async def ReleaseRun(  # noqa: N802 - named by the .proto file
        self, request: pb.ReleaseRunRequest, context: Any
    ) -> pb.Run:
        run, caller = self._find(request.name), caller_of(context)
        _require_request_id(request.request_id)
        command = ReleaseRun(actor=caller, reason=request.reason[:500], at=self._parts.clock.now())
        if request.validate_only:
            release(run, command)
            return self._message(run)
        asked = CommandContext(command_id=request.request_id, actor=caller, correlation_id=run.run_id)
        await self._parts.records.perform(run_stream(run.run_id), command, asked)
        return self._message(self._find(run.run_id))

    async def WatchRun(  # noqa: N802 - named by the .proto file
        self, request: pb.WatchRunRequest, context: Any
    ) -> AsyncIterator[pb.WatchRunResponse]:
        run_id, cursor = self._find(request.name).run_id, parse_cursor(request.cursor)
        phase = self._parts.journal.phase_at(run_id, cursor)
        while True:
            pulse = self._parts.journal.pulse(run_id)
            entries = self._parts.journal.behind(run_id, cursor)
            for entry in entries:
                cursor = cursor.after(entry.topic, entry.position)
                phase = entry.phase if entry.phase is not RunPhase.UNSPECIFIED else phase
                yield _fact_message(entry, cursor, phase)
            if entries:
                continue
            if self._find(run_id).phase in ENDED:
                return
            await pulse.wait()

    @property
    def _parts(self) -> Parts:
        return self._opening.parts

    def _find(self, name: str) -> RunState:
        run = self._parts.records.run(find_run(name, self._parts.records.run_ids))
        if run is None:
            raise NotFound(f"there is no run {name!r}")
        return run

    def _message(self, run: RunState) -> pb.Run:
        wait = self._parts.board.waits.get(run.run_id) if run.phase is RunPhase.QUEUED else None
        return run_message(run, last_committed(self._parts.outside.of(run.run_id), run.last_committed), wait)

    def _order(self, request: pb.SubmitRunRequest, caller: str) -> Order:
        code = CodeRef(
            requested=request.code_requested,
            archive_digest=request.code_archive_digest,
            git_commit=request.git_commit or None,
            dirty_diff_digest=request.dirty_diff_digest or None,
        )
        submission = Submission(
            caller=caller,
            drawn_seed=self._parts.draws.seed(),
            datasets=tuple(request.datasets),
            compute=request.compute,
            evaluation_pack=request.evaluation_pack,
            code=code,
        )
        return Order(
            request_id=request.request_id,
            config=request.config,
            pack_body=request.evaluation_pack_body,
            submission=submission,
            validate_only=request.validate_only,
        )


def _require_request_id(request_id: str) -> None:
    if not request_id:
        description = "is required: a UUIDv7 minted by the caller"
        raise CommandRejected(
            f"request_id {description}", violations=(FieldViolation(field="request_id", description=description),)
        )


def _newest_first(run: RunState) -> tuple[str, ...]:
    at = run.submitted_at.isoformat(timespec="microseconds") if run.submitted_at else ""
    return (newest_first(at), newest_first(run.run_id))


def _fact_message(entry: Entry, cursor: Cursor, phase: RunPhase) -> pb.WatchRunResponse:
    known = not isinstance(entry.fact, UnknownFact)
    return pb.WatchRunResponse(
        cursor=str(cursor),
        fact=fact_name(entry.fact),
        stream=entry.stream,
        sequence=entry.sequence,
        occurred_at=timestamp(entry.occurred_at),
        fields_json=fact_json(entry.fact) if known else "{}",
        phase=wire_phase(phase),
        summary=summary(entry.fact) if not isinstance(entry.fact, UnknownFact) else "a fact of a newer version",
    )
