"""Makes captured checkpoints durable in the background, whether the trainer lives or not."""

from __future__ import annotations

import logging
import os
import queue
import threading
from typing import Protocol

from trackway_trainer_agent.worker.journal import Journal, now_ms
from trackway_trainer_agent.worker.records import CheckpointAbandoned, CheckpointPersisted

logger = logging.getLogger(__name__)
NICENESS = 10


class Save(Protocol):
    """One checkpoint to be written."""

    @property
    def step(self) -> int:
        """Step it is of."""
        ...

    @property
    def nonce(self) -> str:
        """Nonce of its folder."""
        ...

    def write(self) -> CheckpointPersisted:
        """Write it; blocks until it is durable.

        Raises whatever keeps it from being durable; the save is then abandoned, never tried again.
        """
        ...


class Saver:
    """One thread, one save at a time, in the order of asking."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._waiting: queue.SimpleQueue[Save | None] = queue.SimpleQueue()
        self._idle = threading.Condition()
        self._unfinished: list[str] = []
        self._thread = threading.Thread(target=self._run, name="saver", daemon=True)
        self._thread.start()

    @property
    def in_flight(self) -> tuple[str, ...]:
        """Nonces of what is not yet durable."""
        with self._idle:
            return tuple(self._unfinished)

    def submit(self, save: Save) -> None:
        """Queue a save."""
        with self._idle:
            self._unfinished.append(save.nonce)
        self._waiting.put(save)

    def wait_idle(self) -> None:
        """Wait until nothing is in flight."""
        with self._idle:
            self._idle.wait_for(lambda: not self._unfinished)

    def close(self) -> None:
        """Finish what was submitted, then stop."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        # Niceness is per thread on Linux: the trainer's cores come first, the actor's other threads stay prompt.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        while (save := self._waiting.get()) is not None:
            self._write(save)
            with self._idle:
                self._unfinished.remove(save.nonce)
                self._idle.notify_all()

    def _write(self, save: Save) -> None:
        try:
            self._journal.fact(save.write())
        except Exception as error:
            # Top of this thread's task: whatever went wrong with one save, the next one gets its chance.
            why = f"{type(error).__name__}: {error}"
            where = {"step": save.step, "nonce": save.nonce, "why": why}
            logger.warning("checkpoint abandoned", extra=where, exc_info=True)
            self._journal.fact(CheckpointAbandoned(step=save.step, nonce=save.nonce, why=why, at_ms=now_ms()))
