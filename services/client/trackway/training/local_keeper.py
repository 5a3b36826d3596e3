"""Keeps a session's checkpoints in a local folder when there is no Trackway around: the same protocol, on this disk."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from trackway_common.checkpoint.collect import collect
from trackway_common.checkpoint.commit import CommitRequest, commit_checkpoint
from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.layout import CheckpointName, new_nonce
from trackway_common.checkpoint.manifest import Manifest, load_manifest
from trackway_common.checkpoint.rank_part import RankPart, RunInputs, write_rank_part
from trackway_common.checkpoint.resume import choose_resume_target, raise_fence
from trackway_common.checkpoint.retention import KeepLast
from trackway_common.errors import TrackwayError
from trackway_common.object_store import LocalObjectStore
from trackway_common.rank_protocol.phases import Phases

from trackway.training.actor_keeper import derived_nonce
from trackway.training.keeper import Capture, CaptureRefused, ResumeSource
from trackway.training.process_group import ProcessGroup

KEPT = KeepLast(count=3)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRun:
    """What a program that was started by hand counts as: the same program with the same config is the same run."""

    folder: Path
    inputs: RunInputs


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attempt:
    """This start of the program: it owns the run's checkpoints until the next one begins."""

    epoch: int
    token: str
    resume: Manifest | None


class LocalKeeper:
    """Rank 0 fences and commits; every rank writes its own part. Writes before it returns: there is no actor."""

    def __init__(self, run: LocalRun, group: ProcessGroup) -> None:
        self._run = run
        self._group = group
        self._attempt: _Attempt | None = None
        self._first = group.ranks.rank == 0

    @cached_property
    def _log(self) -> CommitLog:
        """Made when it is needed: a program that saves nothing leaves no folder."""
        store = LocalObjectStore(self._run.folder)
        (self._run.folder / ".gitignore").write_text("*\n")
        return CommitLog(store, self._run.inputs.run_id, writer="local", now_ms=lambda: time.time_ns() // 1_000_000)

    def report(self, step: int, values: Mapping[str, float], phases: Phases) -> None:
        self._say(f"step {step}  " + "  ".join(f"{name}={value:.6g}" for name, value in values.items()))

    def warm(self, size_bytes: int) -> None:
        return  # Nothing is shared with anyone: the capture is written from its own memory.

    def busy(self) -> bool:
        return False

    def save(self, capture: Capture) -> None:
        attempt = self._begun()
        name = CheckpointName(step=capture.step, epoch=attempt.epoch, nonce=derived_nonce(attempt.token, capture))
        shard = bytearray(capture.file.size_bytes)
        capture.file.write(memoryview(shard))
        part = RankPart(name=name, rank=self._group.ranks.rank, items=len(capture.file.placed), cursor=capture.cursor)
        self._together(lambda: write_rank_part(self._log.store, self._run.inputs, part, shard))
        self._together(lambda: self._commit(name) if self._first else None)

    def resume_source(self) -> ResumeSource | None:
        manifest = self._begun().resume
        if manifest is None:
            return None
        self._say(f"continues from step {manifest.step}, found in {self._run.folder}; delete that to start anew")
        return ResumeSource(store=self._log.store, manifest=manifest)

    def close(self) -> None:
        return  # Nothing is held open between calls.

    def _begun(self) -> _Attempt:
        if self._attempt is None:
            said = json.loads(self._group.from_first(json.dumps(self._begin()) if self._first else ""))
            self._attempt = _Attempt(epoch=said["epoch"], token=said["token"], resume=self._manifest(said["resume"]))
        return self._attempt

    def _begin(self) -> dict[str, object]:
        epoch = self._log.refresh().head.fence + 1
        target = choose_resume_target(self._log, raise_fence(self._log, epoch))
        for passed in target.passed_over:
            self._say(f"{passed.path} is damaged and was passed over: {passed.why}")
        chosen = target.checkpoint
        resume = None if chosen is None else [chosen.step, chosen.epoch, chosen.nonce, chosen.manifest_digest]
        return {"epoch": epoch, "token": new_nonce(), "resume": resume}

    def _manifest(self, resume: list[Any] | None) -> Manifest | None:
        if resume is None:
            return None
        step, epoch, nonce, manifest_digest = resume
        name = CheckpointName(step=step, epoch=epoch, nonce=nonce)
        return load_manifest(self._log.store, self._run.inputs.run_id, name, manifest_digest)

    def _commit(self, name: CheckpointName) -> None:
        inputs = self._run.inputs
        request = CommitRequest(
            run_id=inputs.run_id,
            name=name,
            world_size=inputs.world_size,
            config_digest=inputs.config_digest,
            dataset_digests=inputs.dataset_digests,
        )
        commit_checkpoint(self._log, request)
        collect(self._log, KEPT, grace_ms=0)

    def _together(self, act: Callable[[], object]) -> None:
        """Act on every rank and go on only if it went well on each: none waits for one that failed."""
        failure: Exception | None = None
        try:
            act()
        except (TrackwayError, OSError) as error:
            failure = error
        if self._group.any(failure is not None):
            raise CaptureRefused(str(failure or "another rank could not write its part")) from failure

    def _say(self, text: str) -> None:
        if self._first:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()
