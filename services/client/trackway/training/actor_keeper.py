"""Keeps a session's reports and captures with the rank's actor, over its socket and its shared memory."""

from __future__ import annotations

import hashlib
import mmap
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict

from trackway_common.checkpoint.layout import parse_name
from trackway_common.checkpoint.manifest import load_manifest
from trackway_common.errors import CommandRejected
from trackway_common.object_store import LocalObjectStore
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
from trackway_common.rank_protocol.phases import Phases
from trackway_common.rank_protocol.staging_memory import map_staging

from trackway.training.errors import CheckpointCorrupt, CheckpointIncompatible
from trackway.training.keeper import Capture, CaptureRefused, ResumeSource
from trackway.training.surroundings import ResumePointer, Supervised


class ActorKeeper:
    """One connection to the rank's actor; used by one thread."""

    def __init__(self, supervised: Supervised) -> None:
        """Connect and say which protocol is spoken.

        Raises:
            RuntimeError: the actor speaks another version.
        """
        self._supervised = supervised
        self._memory: mmap.mmap | None = None
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(os.fspath(supervised.socket))
        self._channel = Channel(connection)
        answer, _ = self._ask(Hello(version=PROTOCOL_VERSION, pid=os.getpid(), dumps_stacks=True))
        if isinstance(answer, Refused):
            raise RuntimeError(f"{answer.why}: install the trackway of the cluster")

    def report(self, step: int, values: Mapping[str, float], phases: Phases) -> None:
        at_ms = time.time_ns() // 1_000_000
        self._channel.send(Report(step=step, values=values, at_ms=at_ms, phases=asdict(phases)))

    def warm(self, size_bytes: int) -> None:
        if self._memory is None or len(self._memory) < size_bytes:
            self._memory = self._staging(size_bytes)

    def busy(self) -> bool:
        return self._save_state(wait=False)

    def save(self, capture: Capture) -> None:
        begun_s = time.monotonic()
        self._save_state(wait=True)
        self.warm(capture.file.size_bytes)
        assert self._memory is not None
        capture.file.write(memoryview(self._memory))
        message = Captured(
            step=capture.step,
            nonce=derived_nonce(self._supervised.attempt_token, capture),
            size_bytes=capture.file.size_bytes,
            items=len(capture.file.placed),
            cursor_seed=capture.cursor.seed if capture.cursor else None,
            data_epoch=capture.cursor.data_epoch if capture.cursor else 0,
            samples_consumed=capture.cursor.samples_consumed if capture.cursor else 0,
            blocked_seconds=time.monotonic() - begun_s,
            metrics=capture.metrics,
            phases=asdict(capture.clock.read()),
            at_ms=time.time_ns() // 1_000_000,
        )
        answer, _ = self._ask(message)
        if not isinstance(answer, Accepted):
            raise CaptureRefused(answer.why if isinstance(answer, Refused) else f"{type(answer).__name__} is no answer")

    def resume_source(self) -> ResumeSource | None:
        pointer = self._supervised.resume
        return _source(pointer) if pointer is not None else None

    def close(self) -> None:
        self._channel.close()

    def _save_state(self, *, wait: bool) -> bool:
        answer, _ = self._ask(SaveStateAsked(wait=wait))
        return isinstance(answer, SaveState) and answer.in_flight

    def _staging(self, size_bytes: int) -> mmap.mmap:
        answer, descriptor = self._ask(StageRequested(size_bytes=size_bytes))
        if not isinstance(answer, Staging) or descriptor is None:
            raise CaptureRefused("the actor lent no staging memory")
        memory = map_staging(descriptor, answer.size_bytes)
        os.close(descriptor)  # The mapping holds the memory.
        return memory

    def _ask(self, message: Message) -> tuple[Message, int | None]:
        self._channel.send(message)
        return self._channel.receive()


def derived_nonce(attempt_token: str, capture: Capture) -> str:
    """The same on every rank without a word between them, another for every capture of every attempt."""
    return hashlib.sha256(f"{attempt_token}/{capture.step}/{capture.number}".encode()).hexdigest()[:8]


def _source(pointer: ResumePointer) -> ResumeSource:
    """From ``<root>/checkpoints/<run>/data/<name>`` to the store that it lies in."""
    try:
        name = parse_name(pointer.folder.name)
    except CommandRejected as error:
        raise CheckpointIncompatible(f"{pointer.folder} is a plain folder: a session did not write it") from error
    store, run_id = LocalObjectStore(pointer.folder.parents[3]), pointer.folder.parents[1].name
    try:
        return ResumeSource(store=store, manifest=load_manifest(store, run_id, name, pointer.manifest_digest))
    except CommandRejected as error:
        raise CheckpointCorrupt(error.message) from error
