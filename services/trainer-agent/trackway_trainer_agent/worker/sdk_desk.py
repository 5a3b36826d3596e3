"""Answers the SDK: takes its reports, lends the staging memory, accepts captures."""

from __future__ import annotations

import os
import threading

from trackway_common.object_store.port import ObjectStore
from trackway_common.rank_protocol.framing import Channel
from trackway_common.rank_protocol.messages import (
    PROTOCOL_VERSION,
    Accepted,
    Captured,
    Hello,
    Message,
    Refused,
    Report,
    SaveState,
    SaveStateAsked,
    StageRequested,
    Staging,
)
from trackway_common.rank_protocol.phases import Phases, read_moment_ms, read_phases
from trackway_common.rank_protocol.staging_memory import create_staging, grow_staging, map_staging

from trackway_trainer_agent.worker.journal import Journal, now_ms
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import CheckpointCaptured
from trackway_trainer_agent.worker.saver import Saver
from trackway_trainer_agent.worker.session_save import SessionSave, cursor_record


class SdkDesk:
    """Handles the messages of one trainer; called by the socket's threads."""

    def __init__(self, spec: RankSpec, *, journal: Journal, saver: Saver, store: ObjectStore) -> None:
        self._spec = spec
        self._journal = journal
        self._saver = saver
        self._store = store
        self._capturing = threading.Lock()
        self._staging = create_staging()
        self.dumps_stacks = False

    def handle(self, message: Message, channel: Channel) -> None:
        """Act on one message and answer it; raises ``ValueError`` on one that a trainer never sends."""
        self._journal.progress.spoke()
        match message:
            case Hello():
                channel.send(self._greet(message))
            case Report():
                at_ms, phases = read_moment_ms(message.at_ms), read_phases(message.phases)
                self._journal.step(message.step, message.values, at_ms)
                self._journal.measured(phases, at_ms)
            case StageRequested():
                size_bytes = self._stage(message.size_bytes)
                channel.send(Staging(size_bytes=size_bytes), descriptor=self._staging)
            case SaveStateAsked():
                if message.wait:
                    self._wait_idle()
                channel.send(SaveState(in_flight=bool(self._saver.in_flight)))
            case Captured():
                channel.send(self._accept(message))
            case _:
                raise ValueError(f"a trainer does not send {type(message).__name__}")

    def close(self) -> None:
        """Give the staging memory back."""
        os.close(self._staging)

    def hung_up(self) -> None:
        """The SDK closed its connection."""
        self._journal.progress.left()

    def _wait_idle(self) -> None:
        self._journal.progress.waiting_for_us(1)
        try:
            self._saver.wait_idle()
        finally:
            self._journal.progress.waiting_for_us(-1)

    def _greet(self, hello: Hello) -> Accepted | Refused:
        if hello.version != PROTOCOL_VERSION:
            return Refused(why=f"the SDK speaks version {hello.version}, this node's actor {PROTOCOL_VERSION}")
        self.dumps_stacks = hello.dumps_stacks
        self._journal.measured(Phases(), now_ms())
        return Accepted()

    def _stage(self, size_bytes: int) -> int:
        before = os.fstat(self._staging).st_size
        size = grow_staging(self._staging, size_bytes)
        if size > before:
            map_staging(self._staging, size)  # Both sides fault the pages in: each has its own page table.
        return size

    def _accept(self, captured: Captured) -> Accepted | Refused:
        with self._capturing:
            if self._saver.in_flight:
                return Refused(why="an earlier save still reads the staging memory")
            if captured.size_bytes > os.fstat(self._staging).st_size:
                return Refused(why="more was captured than the staging memory holds")
            cursor = cursor_record(captured)
            measured = self._journal.measured(read_phases(captured.phases), read_moment_ms(captured.at_ms) or now_ms())
            self._journal.fact(
                CheckpointCaptured(
                    step=captured.step,
                    nonce=captured.nonce,
                    size_bytes=captured.size_bytes,
                    blocked_seconds=captured.blocked_seconds,
                    world_size=self._spec.world_size,
                    samples_consumed=cursor.samples_consumed if cursor else 0,
                    metrics=tuple(captured.metrics.items()),
                    at_ms=measured.at_ms,
                    phases=measured,
                )
            )
            save = SessionSave(store=self._store, spec=self._spec, staging=self._staging, captured=captured)
            self._saver.submit(save)
            return Accepted()
