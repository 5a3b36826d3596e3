"""What a dataset manifest must say to be registered."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from trackway_common.canonical import Json, canonical_json, digest_bytes
from trackway_common.errors import CommandRejected, FieldViolation
from trackway_common.fields import Fields

MANIFEST_INVALID = "MANIFEST_INVALID"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)
_SHA256 = re.compile(r"(sha256:)?[0-9a-f]{64}")
_SHOWN = 5
"""Files with mistakes that are named; one mistake is usually everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest that may be registered."""

    name: str
    canonical: bytes
    digest: str
    files: int
    size_bytes: int
    splits: tuple[str, ...]


def check_manifest(data: bytes) -> Manifest:
    """Read a manifest and bring it into canonical form.

    Raises:
        CommandRejected: it is none, or something in it is wrong; every field is named.
    """
    body = _load(data)
    found: list[FieldViolation] = []
    fields = Fields(body, "manifest", found, ("name", "root", "files", "splits"))
    name = fields.text("name")
    if name and not _NAME.fullmatch(name):
        fields.violation("name", f"{name!r} must be 1 to 63 of letters, digits, '.', '_' and '-'")
    if (root := fields.text("root")) and not root.startswith("/"):
        fields.violation("root", f"{root!r} must be an absolute folder")
    splits = tuple(sorted(fields.mapping("splits")))
    files = fields.sections("files", ("path", "bytes", "sha256", "split"))
    if not files:
        fields.violation("files", "must name at least one file")
    size_bytes = _files(fields, files, splits)
    if found:
        raise _invalid(found)
    canonical = canonical_json(body)
    return Manifest(
        name=name,
        canonical=canonical,
        digest=digest_bytes(canonical),
        files=len(files),
        size_bytes=size_bytes,
        splits=splits,
    )


def _load(data: bytes) -> Json:
    try:
        body: Json = json.loads(data)
        canonical_json(body)
    except (ValueError, RecursionError) as error:
        raise _invalid([FieldViolation(field="manifest", description=f"is not canonical JSON: {error}")]) from error
    return body


def _files(fields: Fields, files: Sequence[Fields], splits: Sequence[str]) -> int:
    size_bytes, seen, wrong = 0, set[str](), 0
    for i, file in enumerate(files):
        path, split = file.text("path"), file.text("split")
        size_bytes += file.whole("bytes", 0, at_least=0)
        if problem := _file_problem(file, path, split, seen, splits):
            wrong += 1
            if wrong <= _SHOWN:
                fields.violation(f"files[{i}]", problem)
        seen.add(path)
    if wrong > _SHOWN:
        fields.violation("files", f"{wrong - _SHOWN} more are wrong")
    return size_bytes


def _file_problem(file: Fields, path: str, split: str, seen: set[str], splits: Sequence[str]) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        return f"path {path!r} leaves the root"
    if path in seen:
        return f"path {path!r} stands twice"
    if split not in splits:
        return f"split {split!r} is not among the splits ({', '.join(splits) or 'none'})"
    if not _SHA256.fullmatch(file.text("sha256")):
        return "sha256 must be 64 hex digits"
    return ""


def _invalid(violations: list[FieldViolation]) -> CommandRejected:
    shown = "; ".join(f"{one.field} {one.description}" for one in violations[:3])
    return CommandRejected(
        f"the manifest can't be registered: {shown}", reason=MANIFEST_INVALID, violations=tuple(violations)
    )
