"""Where one fault happens: a run on the stack, a folder to meet its program in, and hands to hurt it."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from trackway import TrackwayClient
from trackway.client.dataset_files import Globs
from trackway.client.snapshot import take_snapshot
from trackway.client.splits import parse_splits

from tests.faults.corpus.label import Label
from tests.support.ranks import actor_of
from tests.support.runs import Followed
from tests.support.stack import Stack, wait_until

READY_S = 60.0
ROW = "0.5 0.25\n"


@dataclass(kw_only=True)
class Scene:
    """Of one fault."""

    stack: Stack
    client: TrackwayClient
    label: Label
    meeting: Path
    """Seen by the program as ``meeting``."""
    cleanup: ExitStack
    followed: Followed = field(default_factory=lambda: Followed(""))
    hurt: list[dict[str, Any]] = field(default_factory=list)
    """What the harness did to which process."""

    @property
    def attempt(self) -> int:
        """The newest attempt that was placed."""
        return len(self.followed.named("AttemptPlaced"))

    def said(self, word: str) -> Path:
        """The file that stands for a word."""
        return self.meeting / word

    def say(self, word: str) -> None:
        """Let the program go on."""
        self.said(word).touch()

    def await_ready(self, *ranks: int) -> None:
        """Wait until these ranks of the newest attempt stand where they are to be hurt."""
        for rank in ranks or range(self.label.ranks):
            word = self.said(f"ready-{self.attempt}-{rank}")
            wait_until(word.exists, READY_S, what=f"{self.label.name}: rank {rank} to be ready")

    def rank(self, rank: int) -> Mapping[str, Any]:
        """What the newest attempt says of a rank's start."""
        started = self.followed.named("AttemptStarted")[-1]["ranks"]
        found: Mapping[str, Any] = next(entry for entry in started if entry["rank"] == rank)
        return found

    def trainer(self, rank: int = 0) -> psutil.Process:
        """A rank's program."""
        return psutil.Process(int(self.rank(rank)["trainer_pid"]))

    def launcher(self, rank: int = 0) -> psutil.Process:
        """What the actor started the program with."""
        return _parent(self.trainer(rank))

    def actor(self, rank: int = 0) -> psutil.Process:
        """The actor that supervises the rank."""
        return psutil.Process(actor_of(self.trainer(rank).pid))

    def send(self, sent: signal.Signals, *processes: psutil.Process) -> None:
        """Signal processes, all before any of them can react."""
        for process in processes:
            self.hurt.append({"pid": process.pid, "program": process.name(), "sent": sent.name})
        for process in processes:
            os.kill(process.pid, sent)

    def object(self, key: str) -> Path:
        """A file of the stack's object store."""
        return self.stack.folder.objects / key

    def blob(self, digest: str) -> Path:
        """A blob's file."""
        return self.object(f"blobs/sha256/{digest.removeprefix('sha256:')}")

    def dataset(self, rows: int = 40) -> tuple[str, Path]:
        """Register a dataset of this fault's own; returns its name and its folder."""
        folder = self.meeting / "data"
        folder.mkdir()
        for part in range(3):
            (folder / f"part{part}.txt").write_text(ROW * rows + f"{self.label.name}\n")
        name = f"of-{self.label.name}"
        taken = take_snapshot(name, (folder,), Globs(), parse_splits(()))
        self.client.register_dataset(taken.manifest, project="tests")
        return name, folder


def _parent(process: psutil.Process) -> psutil.Process:
    parent = process.parent()
    assert parent is not None, f"{process.pid} has no parent"
    return parent
