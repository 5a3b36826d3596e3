"""``log.json``: what a copied log holds. Written last, so a folder without it is no copied log."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from trackway_common.errors import CommandRejected
from trackway_common.topics import FACT_TOPICS, TELEMETRY

FORMAT = "trackway-log/1"
MANIFEST, INDEX = "log.json", "index.sqlite"
_COPIED = frozenset({*FACT_TOPICS, TELEMETRY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which part of the log is copied; both empty: all of it."""

    run_id: str = ""
    project: str = ""

    @property
    def everything(self) -> bool:
        return not self.run_id and not self.project


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Records of one partition, in one file."""

    topic: str
    partition: int
    path: str
    first_offset: int
    """Oldest offset that the broker still had."""
    end_offset: int
    """The copy holds what was below it."""
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One file and the digest of its bytes."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The whole of ``log.json``."""

    exported_at: datetime
    made_by: str
    scope: Scope
    segments: tuple[Segment, ...]
    files: tuple[File, ...]
    """Every file but this one."""
    telemetry_left_out: int = 0
    """Telemetry records of the scope beyond the limit on their size."""
    blobs_left_out: int = 0
    """Blobs beyond the limit on their size."""


def write_manifest(folder: Path, manifest: Manifest) -> bytes:
    """Write ``log.json`` and return its bytes."""
    fields = {"format": FORMAT, **dataclasses.asdict(manifest), "exported_at": manifest.exported_at.isoformat()}
    data = (json.dumps(fields, indent=1, sort_keys=True) + "\n").encode()
    (folder / MANIFEST).write_bytes(data)
    return data


def read_manifest(folder: Path) -> Manifest:
    """Read ``log.json``.

    Raises:
        CommandRejected: the folder holds no copied log, or one that this build can't read.
    """
    path = folder / MANIFEST
    try:
        fields = json.loads(path.read_bytes())
        version = fields.pop("format")
        if version != FORMAT:
            raise CommandRejected(
                f"{path} has format {version!r}; this build reads {FORMAT}: use the build that wrote it"
            )
        return Manifest(
            **fields
            | {
                "exported_at": datetime.fromisoformat(fields["exported_at"]),
                "scope": Scope(**fields["scope"]),
                "segments": tuple(_checked(Segment(**segment)) for segment in fields["segments"]),
                "files": tuple(File(**file) for file in fields["files"]),
            }
        )
    except OSError as error:
        raise CommandRejected(
            f"{folder} holds no exported log ({error.strerror}: {path.name}); `trackway log export {folder}` makes one"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandRejected(f"{path} can't be read ({error}); export the log again") from error


def segment_path(topic: str, partition: int) -> str:
    """``trackway.runs.v1/0007.seg``.

    Raises:
        ValueError: no topic of a log; a folder from elsewhere may name anything.
    """
    if topic not in _COPIED or not 0 <= partition < 1 << 16:
        raise ValueError(f"no partition of a log: {topic!r} {partition!r}")
    return f"{topic}/{partition:04d}.seg"


def _checked(segment: Segment) -> Segment:
    if segment.path != segment_path(segment.topic, segment.partition):
        raise ValueError(f"{segment.path!r} is no segment of {segment.topic}")
    return segment
