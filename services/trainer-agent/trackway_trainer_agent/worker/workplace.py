"""The folder of one rank on its node: inputs as files, the socket, error files, the record buffer."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

MAX_SOCKET_PATH_BYTES = 107
"""``sun_path`` of Linux."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Paths below one rank's folder."""

    root: Path
    code_cache: Path
    """Shared by all ranks of this user on the node."""
    socket: Path

    @property
    def buffer(self) -> Path:
        return self.root / "records.sqlite"

    @property
    def config(self) -> Path:
        return self.root / "hyperparameters.json"

    @property
    def datasets(self) -> Path:
        return self.root / "datasets"

    @property
    def error_file(self) -> Path:
        return self.root / "error.json"

    @property
    def torchelastic_error_file(self) -> Path:
        return self.root / "torchelastic-error.json"

    @property
    def stacks(self) -> Path:
        return self.root / "stacks.txt"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def resume(self) -> Path:
        return self.root / "resume"

    def close(self) -> None:
        """Remove the rank's folder; the code cache stays for the next attempt."""
        shutil.rmtree(self.root, ignore_errors=True)
        shutil.rmtree(self.socket.parent, ignore_errors=True)


def make_workplace(scratch: Path) -> Workplace:
    """Make a fresh folder, private to this user, below a node-local one."""
    scratch.mkdir(parents=True, exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix="rank-", dir=scratch))
    socket = root / "sdk"
    if len(os.fsencode(socket)) > MAX_SOCKET_PATH_BYTES:
        socket = Path(tempfile.mkdtemp(prefix="tw-", dir="/tmp")) / "sdk"
    place = Workplace(root=root, code_cache=scratch / "code", socket=socket)
    place.datasets.mkdir()
    place.checkpoints.mkdir()
    return place
