"""One trainer from start to end: prepares it, runs it, listens to it, and says how it ended."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from trackway_common.errors import TrackwayError
from trackway_common.object_store import ObjectStore, open_store

from trackway_trainer_agent.worker.directory_watch import DirectoryWatch, folder_save
from trackway_trainer_agent.worker.journal import Journal, now_ms
from trackway_trainer_agent.worker.preparation import PreparationFailed, Prepared, prepare
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import LaunchFailed, RankPhase
from trackway_trainer_agent.worker.saver import Saver
from trackway_trainer_agent.worker.sdk_desk import SdkDesk
from trackway_trainer_agent.worker.sdk_server import SdkServer
from trackway_trainer_agent.worker.stacks import answers_stacks
from trackway_trainer_agent.worker.trainer_process import ExecutionFailed, ProcessEnd, TrainerProcess
from trackway_trainer_agent.worker.trainer_run import TrainerRun
from trackway_trainer_agent.worker.workplace import Workplace

logger = logging.getLogger(__name__)
LAST_MESSAGES_S = 5.0
"""For reading what a dead trainer left in its socket."""


class Supervision:
    """Supervises in a thread of its own; the methods return at once."""

    def __init__(self, spec: RankSpec, *, place: Workplace, journal: Journal, release_port: Callable[[], None]) -> None:
        self._spec = spec
        self._place = place
        self._journal = journal
        self._release_port = release_port
        self._lock = threading.Lock()
        self._process: TrainerProcess | None = None
        self._desk: SdkDesk | None = None
        self._stop_requested_at_ms: int | None = None
        self._stopped_at_ms: int | None = None
        """The same, but only if the trainer still ran."""
        self._ended = False
        journal.phase = RankPhase.PREPARING
        self._thread = threading.Thread(target=self._run, name="supervision", daemon=True)
        self._thread.start()

    @property
    def trainer_pid(self) -> int | None:
        """Process id while the trainer runs."""
        process, runs = self._process, self._journal.phase is RankPhase.RUNNING and not self._ended
        return process.pid if process is not None and runs else None

    @property
    def dumps_stacks(self) -> bool:
        """The trainer said that it answers ``dump_stacks``: by its session, or as its interpreter started."""
        by_session = self._desk is not None and self._desk.dumps_stacks
        return by_session or (self._process is not None and answers_stacks(self._place.stacks, self._process.pid))

    def stop(self, grace_s: float) -> None:
        """Ask the trainer to end; kill it and its descendants when the grace is over."""
        process = self._process_to_stop()
        if process is not None:
            process.terminate()
            killer = threading.Timer(grace_s, process.kill)
            killer.daemon = True
            killer.start()

    def kill(self) -> None:
        """Kill the trainer and its descendants."""
        process = self._process_to_stop()
        if process is not None:
            process.kill()

    def dump_stacks(self) -> None:
        """Have the trainer write its stacks; deadly to one that did not say that it can."""
        if self._process is not None and self.dumps_stacks:
            self._process.dump_stacks()

    def join(self) -> None:
        """Wait until nothing more will happen."""
        self._thread.join()

    def _process_to_stop(self) -> TrainerProcess | None:
        with self._lock:
            if self._stop_requested_at_ms is None:
                self._stop_requested_at_ms = now_ms()
            return self._process

    def _note_end(self) -> None:
        """What comes after the end did not bring it about, even where the end takes long to tell."""
        with self._lock:
            self._stopped_at_ms, self._ended = self._stop_requested_at_ms, True

    def _run(self) -> None:
        try:
            self._supervise()
        except PreparationFailed as error:
            self._journal.end(LaunchFailed(stage=error.stage, message=error.message, at_ms=now_ms()))
        except Exception as error:
            # Top of this thread's task: the agent must hear of an end, whatever it was.
            logger.exception("supervision failed")
            why = f"supervision failed: {type(error).__name__}: {error}"
            self._journal.end(LaunchFailed(stage="execute", message=why, at_ms=now_ms()))

    def _supervise(self) -> None:
        store = self._open_store()
        prepared = prepare(self._spec, place=self._place, store=store)
        saver = Saver(self._journal)
        self._desk = SdkDesk(self._spec, journal=self._journal, saver=saver, store=store)
        try:
            server = SdkServer(self._place.socket, self._desk.handle, self._desk.hung_up)
            watch = DirectoryWatch(self._place.checkpoints, partial(self._save_folder, store, saver))
            run, end = self._run_to_end(prepared, server, watch)
            self._journal.fact(run.evidence(end, stopped_at_ms=self._stopped_at_ms))
            self._journal.phase = RankPhase.SAVING
        finally:
            saver.close()
            self._desk.close()
        self._journal.end()

    def _open_store(self) -> ObjectStore:
        try:
            return open_store(self._spec.store_url)
        except (TrackwayError, OSError) as error:
            # The code is the first thing that is read of it.
            raise PreparationFailed("code", f"{type(error).__name__}: {error}") from error

    def _save_folder(self, store: ObjectStore, saver: Saver, step: int, folder: Path) -> None:
        # The program's one checkpoint: every rank may write one, rank 0's counts.
        if self._spec.rank == 0:
            save = folder_save(store, self._spec, step, folder)
            self._journal.fact(save.captured())
            saver.submit(save)

    def _run_to_end(
        self, prepared: Prepared, server: SdkServer, watch: DirectoryWatch
    ) -> tuple[TrainerRun, ProcessEnd]:
        """Run the trainer, then take its last words: what it sent and wrote before it died counts."""
        try:
            run = self._start(prepared)
            try:
                end = run.wait(self._note_end)
            finally:
                # Whatever happened here, no trainer outlives its supervision.
                run.process.close()
        finally:
            server.close(LAST_MESSAGES_S)
            watch.finish()
        return run, end

    def _start(self, prepared: Prepared) -> TrainerRun:
        self._release_port()
        try:
            run = TrainerRun(prepared, spec=self._spec, place=self._place, journal=self._journal)
            self._journal.progress.begin(self._spec.patience, world_size=self._spec.world_size)
        except ExecutionFailed as error:
            raise PreparationFailed("execute", str(error)) from error
        with self._lock:
            self._process = run.process
            stopped_meanwhile = self._stop_requested_at_ms is not None
        self._journal.phase = RankPhase.RUNNING
        if stopped_meanwhile:
            run.process.kill()
        return run
