"""CheckpointService: what the commit logs say, read from the store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.layout import parse_path
from trackway_common.checkpoint.log_state import CommitState, LogState
from trackway_common.checkpoint.verify import Depth, Verification, verify_commit
from trackway_common.codec import to_message
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.events import CheckpointPhase
from trackway_common.rpc import Servable
from trackway_proto.v1 import checkpoint_service_pb2, checkpoint_service_pb2_grpc, vocabulary_pb2

from trackway_checkpointer.domain.facts import reference
from trackway_checkpointer.entrypoints.names import (
    CheckpointPointer,
    RunName,
    format_checkpoint,
    page_size,
    parse_checkpoint,
    parse_run,
    parse_token,
)
from trackway_checkpointer.shell.run_logs import RunLogs


class CheckpointApi(checkpoint_service_pb2_grpc.CheckpointServiceServicer):
    """Reads commit logs; changes nothing."""

    def __init__(self, logs: RunLogs) -> None:
        self._logs = logs

    async def GetCheckpoint(  # noqa: N802 - named by the .proto file
        self, request: checkpoint_service_pb2.GetCheckpointRequest, context: Any
    ) -> checkpoint_service_pb2.Checkpoint:
        run, commit = await self._find(request.name)
        return _message(run, commit)

    async def ListCheckpoints(  # noqa: N802 - named by the .proto file
        self, request: checkpoint_service_pb2.ListCheckpointsRequest, context: Any
    ) -> checkpoint_service_pb2.ListCheckpointsResponse:
        size, below = page_size(request.page_size), parse_token(request.page_token)
        run, state = await self._state(parse_run(request.parent))
        left = [commit for commit in reversed(list(state.commits.values())) if below is None or commit.slot < below]
        page = left[:size]
        return checkpoint_service_pb2.ListCheckpointsResponse(
            checkpoints=[_message(run, commit) for commit in page],
            next_page_token=str(page[-1].slot) if len(left) > size else "",
        )

    async def VerifyCheckpoint(  # noqa: N802 - named by the .proto file
        self, request: checkpoint_service_pb2.VerifyCheckpointRequest, context: Any
    ) -> checkpoint_service_pb2.VerifyCheckpointResponse:
        run, commit = await self._find(request.name)
        if commit.tombstoned is not None:
            raise CommandRejected(f"{request.name} was deleted by retention", reason="FAILED_PRECONDITION")
        checked = await asyncio.to_thread(self._verify, run.run, commit)
        manifest = checked.manifest
        return checkpoint_service_pb2.VerifyCheckpointResponse(
            ok=checked.ok,
            files=len(manifest.files) if manifest else 0,
            size_bytes=manifest.size_bytes if manifest else 0,
            problems=checked.problems,
        )

    def _verify(self, run_id: str, commit: CommitState) -> Verification:
        marker = commit.commit
        return verify_commit(self._logs.store, run_id, marker.path, marker.manifest_digest, Depth.HASHES)

    async def _find(self, name: str) -> tuple[RunName, CommitState]:
        pointer = parse_checkpoint(name)
        run, state = await self._state(pointer.run)
        found = [commit for commit in state.commits.values() if _is_meant(commit, pointer)]
        if not found:
            raise NotFound(f"there is no committed checkpoint {name!r}; `trackway checkpoint list` shows them")
        return run, found[-1]

    async def _state(self, run: RunName) -> tuple[RunName, LogState]:
        whole = replace(run, run=await self._whole_id(run.run))
        return whole, await self._logs.call(whole.run, CommitLog.refresh)

    async def _whole_id(self, beginning: str) -> str:
        found = [run_id for run_id in await self._logs.run_ids() if run_id.startswith(beginning)]
        if beginning in found:
            return beginning
        if len(found) > 1:
            raise CommandRejected(
                f"{len(found)} runs begin with {beginning!r}; write more of the id", reason="AMBIGUOUS"
            )
        if not found:
            raise NotFound(f"no run {beginning!r} has checkpoints")
        return found[0]


def servable(api: CheckpointApi) -> Servable:
    """The service as a server registers it."""
    return Servable(
        checkpoint_service_pb2_grpc.add_CheckpointServiceServicer_to_server,
        api,
        "trackway_proto.v1.CheckpointService",
    )


def _is_meant(commit: CommitState, pointer: CheckpointPointer) -> bool:
    if pointer.step is not None:
        return commit.commit.step == pointer.step
    return str(parse_path(commit.commit.path)) == pointer.checkpoint


def _phase(commit: CommitState) -> CheckpointPhase:
    if commit.deleted is not None:
        return CheckpointPhase.DELETED
    if commit.quarantined is not None:
        return CheckpointPhase.QUARANTINED
    return CheckpointPhase.COMMITTED if commit.superseded is None else CheckpointPhase.SUPERSEDED


def _message(run: RunName, commit: CommitState) -> checkpoint_service_pb2.Checkpoint:
    marker = commit.commit
    message = checkpoint_service_pb2.Checkpoint(
        name=format_checkpoint(run, str(parse_path(marker.path))),
        ref=to_message(reference(run.run, commit.slot, marker)),
        phase=vocabulary_pb2.CheckpointPhase.Value(f"CHECKPOINT_PHASE_{_phase(commit).value}"),
        parent=None if marker.parent is None else to_message(marker.parent),
        path=marker.path,
        size_bytes=marker.size_bytes,
        world_size=marker.world_size,
        samples_consumed=marker.samples_consumed,
        config_digest=marker.config_digest,
        dataset_digests=marker.dataset_digests,
    )
    message.committed_at.FromMilliseconds(commit.at_ms)
    return message
