"""The state folder of a local stack: where everything lies, and the record of who runs there.

Light on imports: every command of the CLI reads its endpoints here.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trackway_common.errors import CommandRejected, FieldViolation

PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True)
class StateFolder:
    """Paths below one state folder. ``root`` is absolute."""

    root: Path

    @property
    def lock(self) -> Path:
        """Held (flock) by the supervisor as long as it lives; contains its pid."""
        return self.root / "lock"

    @property
    def record(self) -> Path:
        return self.root / "stack.json"

    @property
    def status(self) -> Path:
        return self.root / "status.json"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def traces(self) -> Path:
        return self.root / "traces"

    @property
    def kafka(self) -> Path:
        return self.root / "kafka"

    @property
    def clickhouse(self) -> Path:
        return self.root / "clickhouse"

    @property
    def objects(self) -> Path:
        return self.root / "objects"

    @property
    def ray_token(self) -> Path:
        return self.root / "ray-token"

    @property
    def catalogue(self) -> Path:
        return self.root / "catalogue.yaml"

    def log_of(self, child: str) -> Path:
        return self.logs / f"{child}.log"

    def create(self) -> None:
        """Make the folder and those below it, for this user only.

        Raises:
            CommandRejected: that can't be done there.
        """
        try:
            for folder in (self.root, self.logs, self.traces, self.kafka, self.clickhouse, self.objects):
                folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        except OSError as error:
            description = f"{error.filename} can't be made ({error.strerror}); choose another folder"
            violation = FieldViolation(field="state", description=description)
            raise CommandRejected(description, violations=(violation,)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessMark:
    """One process, told from a later one with the same pid."""

    pid: int
    create_time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StackRecord:
    """What ``stack.json`` holds: enough to find the stack again, also when its supervisor is gone."""

    stack_id: str
    """Stays the folder's own over restarts, so that leftovers of any earlier start are found by it."""
    folder: str
    """Where the record was written: a copied folder is another stack."""
    ports: Mapping[str, int]
    endpoints: Mapping[str, str] = field(default_factory=dict)
    """Empty once the stack was stopped in order."""
    supervisor: ProcessMark | None = None
    started_at: str = ""


def default_state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return $TRACKWAY_STATE, else the user's state folder (``~/.local/state/trackway`` on Linux)."""
    if chosen := environ.get("TRACKWAY_STATE"):
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return platformdirs.user_state_path("trackway")


def state_folder(path: Path | None = None) -> StateFolder:
    """Return the named folder, else the default one; nothing is created."""
    return StateFolder(path.expanduser().absolute() if path else default_state_folder())


def read_endpoints(state: Path | None = None) -> Mapping[str, str]:
    """Return where each part of the folder's stack listens; empty when none runs there."""
    record = read_record(state_folder(state))
    return record.endpoints if record else {}


def read_record(folder: StateFolder) -> StackRecord | None:
    """Return the folder's record; None when there is none, or it was copied from another folder."""
    raw = read_json(folder.record)
    if raw is None or raw.get("folder") != str(folder.root):
        return None
    supervisor = raw.pop("supervisor", None)
    return StackRecord(**raw, supervisor=ProcessMark(**supervisor) if supervisor else None)


def write_record(folder: StateFolder, record: StackRecord) -> None:
    """Replace the folder's record."""
    write_json(folder.record, asdict(record))


def read_json(path: Path) -> dict[str, Any] | None:
    """Return what a file of ours holds; None when it is missing or was never ours."""
    try:
        found = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a file as a whole: a reader sees the old one or the new one, also after a crash."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(value, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:  # also when interrupted: nobody would remove the hidden file
        Path(name).unlink(missing_ok=True)
        raise
