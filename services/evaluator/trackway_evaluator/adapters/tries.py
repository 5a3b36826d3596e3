"""Tries of evaluations as processes and folders on this machine."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trackway_common.events import EvaluationFailure
from trackway_common.oom_counter import oom_kills

from trackway_evaluator.adapters import processes
from trackway_evaluator.adapters.outcomes import Broken, End, Outcome, Scored, read_outcome
from trackway_evaluator.adapters.processes import Process
from trackway_evaluator.domain.order import Order
from trackway_evaluator.protocol import (
    DatasetInput,
    WorkFolder,
    WorkProcess,
    WorkRequest,
    lock_holder,
    read_record,
    write_record,
)

log = logging.getLogger(__name__)

FIXED_ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""One thread a process; and matrix products on a GPU that give the same bits again (NVIDIA cuBLAS, Reproducibility)."""
STACK_ID = "TRACKWAY_STACK_ID"
"""By it `trackway down` finds every process of a stack."""
INTERRUPTED = Broken(
    failure=EvaluationFailure.INTERRUPTED,
    message="the evaluator went away while this try ran, and its process did not outlive it",
)


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What an evaluation process inherits: no setting of this service, because passwords are among them."""
    kept = {name: value for name, value in environment.items() if not name.startswith("TRACKWAY_")}
    if (stack := environment.get(STACK_ID)) is not None:
        kept[STACK_ID] = stack
    return kept | FIXED_ENVIRONMENT


class Try:
    """One try whose process was seen alive."""

    def __init__(self, folder: Path, process: Process) -> None:
        self._folder = folder
        self._process = process
        self._oom_kills = oom_kills(os.getpid())

    @property
    def pid(self) -> int:
        """Of the evaluation process."""
        return self._process.pid

    async def outcome(self) -> Outcome:
        """Wait for the end and say what it was."""
        status = await self._process.wait()
        self._process.kill()  # What it started and left behind.
        now = oom_kills(os.getpid())
        killed = now is not None and self._oom_kills is not None and now > self._oom_kills
        return await asyncio.to_thread(read_outcome, self._folder, End(status=status, killed_for_memory=killed))

    async def stop(self) -> None:
        """End the process and return once it is gone."""
        self._process.kill()
        await self._process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """Starts and finds tries below one folder."""

    root: Path
    store_url: str
    environment: Mapping[str, str]

    async def start(self, order: Order, attempt: int, batch_size: int) -> Try:
        """Start a try; the process of the same try that an earlier evaluator started is taken over instead.

        Raises:
            OSError: no process could be started.
        """
        folder = self._folder(order)
        if (orphan := self._orphan(folder)) is not None:
            number, process = orphan
            if number == attempt:
                return Try(folder.attempt(attempt), process)
            process.kill()
            await process.wait()
        here = folder.attempt(attempt)
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir(parents=True)
        request = here / "request.json"
        write_record(request, self._request(order, attempt, batch_size))
        argv = [sys.executable, "-P", "-m", "trackway_evaluator.worker", str(request)]
        return Try(here, await processes.start(argv, here, self.environment))

    async def find(self, order: Order, attempt: int) -> Try | Outcome:
        """A try that was started before: still running, ended meanwhile, or gone without a word."""
        folder = self._folder(order)
        if (orphan := self._orphan(folder)) is not None and orphan[0] == attempt:
            log.info("evaluation process found alive", extra={"evaluation_id": order.evaluation_id, "attempt": attempt})
            return Try(folder.attempt(attempt), orphan[1])
        here = folder.attempt(attempt)
        outcome = read_outcome(here, End(status=None))
        spoke = isinstance(outcome, Scored) or (here / "failure.json").exists()
        return outcome if spoke else INTERRUPTED

    def forget(self, order: Order) -> None:
        """Free what a settled evaluation kept on this machine."""
        shutil.rmtree(self._folder(order).path, ignore_errors=True)

    def folder(self, order: Order) -> Path:
        """Where the evaluation keeps its files."""
        return self._folder(order).path

    def _folder(self, order: Order) -> WorkFolder:
        return WorkFolder(self.root / order.evaluation_id)

    def _orphan(self, folder: WorkFolder) -> tuple[int, Process] | None:
        """The living process of the evaluation, with the number of its try."""
        pid = lock_holder(folder)
        if pid is None:
            return None
        process = processes.adopt(pid)
        if process is None:
            return None
        # Looked at again with the descriptor in hand: the number could have gone to another process.
        if lock_holder(folder) != pid:
            process.release()
            return None
        told = [read_record(WorkProcess, path) for path in folder.path.glob("*/process.json")]
        number = max((one.attempt for one in told if one is not None and one.pid == pid), default=0)
        return number, process

    def _request(self, order: Order, attempt: int, batch_size: int) -> WorkRequest:
        spec = order.spec
        return WorkRequest(
            evaluation_id=order.evaluation_id,
            attempt=attempt,
            run_id=order.run_id,
            store_url=self.store_url,
            pack_digest=order.pack.digest,
            checkpoint=order.checkpoint,
            code_archive_digest=spec.code.archive_digest,
            model=spec.evaluation_model,
            hyperparameters_json=spec.hyperparameters_json,
            datasets=tuple(DatasetInput(name=d.name, manifest_digest=d.manifest_digest) for d in spec.datasets),
            batch_size=batch_size,
        )
