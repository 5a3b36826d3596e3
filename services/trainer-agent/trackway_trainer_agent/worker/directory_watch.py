"""Notices checkpoints that a program writes by itself: folders ``$TRACKWAY_CHECKPOINT_DIR/<step>``.

What has a bare number for its name is complete: a program writes under another name and renames at the end, as
Orbax and most careful writers do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trackway_common.checkpoint.directory import DirectorySave, stage_directory
from trackway_common.checkpoint.layout import CheckpointName, new_nonce, receipt_path
from trackway_common.object_store import ObjectStore

from trackway_trainer_agent.worker.journal import now_ms
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import CheckpointCaptured, CheckpointPersisted
from trackway_trainer_agent.worker.session_save import run_inputs

PERIOD_S = 0.25
MAX_STEP_DIGITS = 15


class DirectoryWatch:
    """A thread that names each step's folder to ``sink`` once."""

    def __init__(self, folder: Path, sink: Callable[[int, Path], None], *, period_s: float = PERIOD_S) -> None:
        self._folder = folder
        self._sink = sink
        self._period_s = period_s
        self._seen: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="directory-watch", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Look a last time, after the trainer's end, and stop."""
        self._stop.set()
        self._thread.join()
        self._look()

    def _run(self) -> None:
        while not self._stop.wait(self._period_s):
            self._look()

    def _look(self) -> None:
        names = {path.name for path in self._folder.iterdir() if path.is_dir()} if self._folder.is_dir() else set()
        fresh = [name for name in names - self._seen if name.isascii() and name.isdigit()]
        for name in sorted(fresh, key=int):
            self._seen.add(name)
            if len(name) <= MAX_STEP_DIGITS:
                self._sink(int(name), self._folder / name)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSave:
    """Copies one such folder into the store, with its receipt."""

    store: ObjectStore
    spec: RankSpec
    name: CheckpointName
    folder: Path
    size_bytes: int

    @property
    def step(self) -> int:
        return self.name.step

    @property
    def nonce(self) -> str:
        return self.name.nonce

    def captured(self) -> CheckpointCaptured:
        """It is complete, and will be copied though the program ends."""
        return CheckpointCaptured(
            step=self.step,
            nonce=self.nonce,
            size_bytes=self.size_bytes,
            blocked_seconds=0.0,
            world_size=1,
            samples_consumed=0,
            metrics=(),
            at_ms=now_ms(),
        )

    def write(self) -> CheckpointPersisted:
        begun_s = time.monotonic()
        inputs = run_inputs(self.spec)
        save = DirectorySave(
            path=self.folder,
            run_id=self.spec.run_id,
            name=self.name,
            config_digest=inputs.config_digest,
            dataset_digests=inputs.dataset_digests,
            code_digest=inputs.code_digest,
        )
        stage_directory(self.store, save)
        return CheckpointPersisted(
            step=self.step,
            nonce=self.nonce,
            receipt_path=f"{self.name.path}/{receipt_path(0)}",
            size_bytes=self.size_bytes,
            seconds=time.monotonic() - begun_s,
            world_size=1,
            samples_consumed=0,
            metrics=(),
            kind="directory",
            at_ms=now_ms(),
        )


def folder_save(store: ObjectStore, spec: RankSpec, step: int, folder: Path) -> FolderSave:
    """A save of that folder under a fresh name."""
    name = CheckpointName(step=step, epoch=spec.epoch, nonce=new_nonce())
    return FolderSave(store=store, spec=spec, name=name, folder=folder, size_bytes=_size_bytes(folder))


def _size_bytes(folder: Path) -> int:
    try:
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    except OSError:
        # The program removes it already; copying it will say so.
        return 0
