"""Checks a copied log: every digest, every record, every verdict, every line of the index."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from trackway_common.acceptance import OWNERSHIP, Acceptance
from trackway_common.codec import CorruptRecord
from trackway_common.log_copy.index import Entry, IndexReader
from trackway_common.log_copy.judge import judge
from trackway_common.log_copy.manifest import INDEX, MANIFEST, File, Manifest, Segment, read_manifest
from trackway_common.log_copy.segment import Frame, Standing, read_frames
from trackway_common.log_copy.writer import files_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What reading every byte of a copy showed."""

    digest: str
    """Of the manifest, as ``trackway log export`` printed it: two copies with one digest are one."""
    files: int
    size_bytes: int
    records: int
    rejected: int
    """Records that the acceptance rule refuses; they are kept as evidence."""
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(folder: Path) -> Check:
    """Read every byte of a copied log.

    Raises:
        CommandRejected: the folder holds no copied log, or one that this build can't read.
    """
    manifest = read_manifest(folder)
    problems = list(_file_problems(folder, manifest))
    broken = {problem.partition(":")[0] for problem in problems}
    rejected = 0
    if INDEX not in broken:
        for segment in manifest.segments:
            if segment.path not in broken:
                found, refused = _segment_problems(folder, segment)
                problems += found
                rejected += refused
    return Check(
        digest="sha256:" + hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest(),
        files=len(manifest.files),
        size_bytes=sum(file.size_bytes for file in manifest.files),
        records=sum(segment.records for segment in manifest.segments),
        rejected=rejected,
        problems=tuple(problems),
    )


def _file_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    there = {file.path: file for file in files_of(folder)}
    for file in manifest.files:
        found = there.pop(file.path, None)
        if found is None:
            yield f"{file.path}: is missing"
        elif found != file:
            yield f"{file.path}: has {_said(found)} instead of {_said(file)}"
    yield from (f"{path}: is not part of this log" for path in sorted(there))


def _said(file: File) -> str:
    return f"{file.size_bytes} bytes of sha256:{file.sha256[:12]}"


def _segment_problems(folder: Path, segment: Segment) -> tuple[list[str], int]:
    """Judge a partition anew and compare with what is written beside each record and in the index."""
    acceptance = Acceptance(segment.topic) if segment.topic in OWNERSHIP else None
    problems: list[str] = []
    rejected, offset, count = 0, -1, 0
    index = IndexReader(folder / INDEX)
    try:
        with (folder / segment.path).open("rb") as file:
            pairs = zip_longest(read_frames(file, segment.topic), index.partition(segment.topic, segment.partition))
            for frame, entry in pairs:
                problem = _record_problem(frame, entry, acceptance, offset)
                if problem or frame is None:
                    problems.append(f"{segment.path}: {problem}")
                    break
                offset, count = frame.copied.record.offset, count + 1
                rejected += frame.copied.standing is Standing.REJECTED
    except CorruptRecord as error:
        problems.append(f"{segment.path}: {error}")
    finally:
        index.close()
    if not problems and count != segment.records:
        problems.append(f"{segment.path}: has {count} records instead of {segment.records}")
    return problems, rejected


def _record_problem(
    frame: Frame | None, entry: tuple[str, Entry] | None, acceptance: Acceptance | None, offset: int
) -> str:
    if frame is None or entry is None:
        return "the index and the file don't hold the same records"
    record = frame.copied.record
    at = f"offset {record.offset}"
    if record.offset <= offset:
        return f"{at} comes after offset {offset}"
    if acceptance is not None:
        judged = judge(acceptance, record)
        if judged.copied != frame.copied:
            said = f"{frame.copied.standing} {frame.copied.refusal}".strip()
            return f"{at} stands as {said}, but is {judged.copied.standing} {judged.copied.refusal}".rstrip()
        if judged.stream != entry[0]:
            return f"{at} is of {judged.stream}, the index says {entry[0]}"
    indexed = (entry[1].position, entry[1].size, entry[1].offset, entry[1].standing)
    if indexed != (frame.position, frame.size, record.offset, frame.copied.standing):
        return f"{at} is not where the index says"
    return ""
