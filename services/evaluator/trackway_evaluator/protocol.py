"""The file protocol between the evaluator and the process that evaluates.

An evaluation has one folder, which outlives its tries::

    lock                     held by the living process, which can be asked for by its lock
    <attempt>/request.json   what to do
    <attempt>/process.json   who does it
    <attempt>/progress.jsonl one line per batch, for people
    <attempt>/stderr.log     what the process printed
    <attempt>/result.json    written last, in one step: the try succeeded
    <attempt>/failure.json   the try failed and could still say why
    samples/<task>/…         scored samples so far; a later try does not score them again
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from trackway_common.checkpoint.json_codec import Malformed, encode, from_json, parse_canonical
from trackway_common.events import CheckpointRef, TaskResult

VERSION = 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInput:
    """A dataset of the run, by the manifest it was pinned to."""

    name: str
    manifest_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkRequest:
    """request.json: everything a try needs, by digest."""

    protocol: int = VERSION
    evaluation_id: str
    attempt: int
    run_id: str
    store_url: str
    pack_digest: str
    checkpoint: CheckpointRef
    code_archive_digest: str
    model: str
    """`module:function(hyperparameters) -> torch.nn.Module`; empty where the adapter is a command."""
    hyperparameters_json: str
    datasets: tuple[DatasetInput, ...]
    batch_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenShard:
    """A Parquet file below the evaluation's folder."""

    task: str
    kind: str
    """`samples` or `failures`."""
    path: str
    sha256: str
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkResult:
    """result.json."""

    protocol: int = VERSION
    tasks: tuple[TaskResult, ...]
    shards: tuple[WrittenShard, ...]
    environment_json: str
    """Canonical JSON of what the process ran on."""
    evaluator_version: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFailure:
    """failure.json: why a process that could still speak gave up."""

    protocol: int = VERSION
    failure: str
    """Word of ``EvaluationFailure``."""
    message: str
    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkProcess:
    """process.json: who holds the lock."""

    protocol: int = VERSION
    attempt: int
    pid: int


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """Paths of one evaluation."""

    path: Path

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    @property
    def samples(self) -> Path:
        return self.path / "samples"

    def attempt(self, number: int) -> Path:
        """Folder of one try."""
        return self.path / str(number)


def write_record(path: Path, record: object) -> None:
    """Write a record in one step: readers see all of it or nothing."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(encode(record))
    unfinished.replace(path)


def read_record(kind: type[T], path: Path) -> T | None:
    """Read a record; None where there is no file.

    Raises:
        Malformed: the file holds something else.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    record = parse_canonical(data)
    if record.get("protocol") != VERSION:
        raise Malformed(f"{path.name}: protocol {record.get('protocol')!r}, not {VERSION}")
    return from_json(kind, record, path.name)


@contextlib.contextmanager
def held_lock(folder: WorkFolder) -> Iterator[None]:
    """Be the evaluation's only process; the kernel lets go when the process ends, however it ends.

    A record lock: its holder can be asked for, and no child inherits it.
    Raises:
        BlockingIOError: another process holds it.
    """
    with folder.lock.open("ab") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def lock_holder(folder: WorkFolder) -> int | None:
    """Process id of the evaluation's living process; None where there is none."""
    try:
        with folder.lock.open("rb") as file:
            asked = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
    except FileNotFoundError:
        return None
    return None if kind == fcntl.F_UNLCK else int(pid)


_FLOCK = struct.Struct("hhqqi4x")
"""``struct flock`` of 64-bit Linux: type, whence, start, length, pid."""
