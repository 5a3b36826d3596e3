"""Entries of a run's commit log and their bytes.

A readable log names everything that exists: what no commit entry names does not exist.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import TypeAlias

from trackway_common.canonical import Json, canonical_json
from trackway_common.checkpoint.json_codec import Malformed, from_json, parse_object, to_json
from trackway_common.errors import CommandRejected, CorruptLog
from trackway_common.events import CheckpointRef, MetricValue

MAX_ENTRY_BYTES = 4096
"""One small read, and one page: an entry is whole or absent."""
MAX_COMMIT_BODY_BYTES = 2300
"""What a commit may use, so that head and envelope still fit."""
MAX_TEXT = 300
"""Characters of a reason; six bytes each at worst."""
_FORMAT = "trackway.commit-log/1"
_CHECK_DIGITS = 16
_CHECK = re.compile(rb'"check":"([0-9a-f]{16})"')
"""Over the bytes with these digits as zeros. Inside a text its quotes would be escaped, so it is found once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """From here on only this epoch, or a higher one after its own fence, may commit."""

    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The marker: this checkpoint exists. Carries what the fact about it says, as far as it fits."""

    epoch: int
    nonce: str
    step: int
    path: str
    manifest_digest: str
    parent: CheckpointRef | None = None
    size_bytes: int = 0
    world_size: int = 0
    samples_consumed: int = 0
    config_digest: str = ""
    dataset_digests: tuple[str, ...] = ()
    """Those that fit; the manifest has all."""
    metrics: tuple[MetricValue, ...] = ()
    """Those that fit; the manifest has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A reader needs the bytes of this commit."""

    commit_slot: int
    consumer: str
    reason: str
    ttl_seconds: int = 0
    """0: until released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    commit_slot: int
    consumer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersede:
    """Retention does not count on this commit any more."""

    commit_slot: int
    by_policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """Never restore from this commit."""

    commit_slot: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """Nobody may begin to read this commit; after the grace its bytes go."""

    commit_slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    commit_slot: int
    freed_bytes: int


Body: TypeAlias = Fence | Commit | Hold | Release | Supersede | Quarantine | Tombstone | Deleted

_KINDS: dict[str, type[Body]] = {
    "fence": Fence,
    "commit": Commit,
    "hold": Hold,
    "release": Release,
    "supersede": Supersede,
    "quarantine": Quarantine,
    "tombstone": Tombstone,
    "deleted": Deleted,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCommit:
    slot: int
    path: str
    manifest_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a resume needs, folded into every entry so that it costs one read."""

    fence: int = 0
    """Highest epoch that was fenced; 0 before any."""
    commits: tuple[HeadCommit, ...] = ()
    """Newest restorable commits, at most eight, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    slot: int
    at_ms: int
    """When its writer wrote it, for people, grace and the time to live of holds; never for order."""
    writer: str
    token: str
    """Drawn for this try, so that a writer knows its own entry again."""
    body: Body
    head: Head


def encode_entry(entry: LogEntry) -> bytes:
    """Bytes of the entry; raises ``CommandRejected`` when its texts make it too large."""
    content: dict[str, Json] = {
        "format": _FORMAT,
        "kind": _NAMES[type(entry.body)],
        "slot": entry.slot,
        "at_ms": entry.at_ms,
        "writer": entry.writer,
        "token": entry.token,
        "body": to_json(entry.body),
        "head": to_json(entry.head),
    }
    blank = canonical_json(content | {"check": "0" * _CHECK_DIGITS})
    data = _CHECK.sub(b'"check":"%s"' % _check(blank), blank, count=1)
    if len(data) > MAX_ENTRY_BYTES:
        raise CommandRejected(f"a log entry of {len(data)} bytes is over {MAX_ENTRY_BYTES}: shorten its texts")
    return data


def decode_entry(data: bytes, *, slot: int) -> LogEntry:
    """Read the entry of that slot; raises ``CorruptLog`` when the bytes are not what a writer wrote there."""
    try:
        _refuse_changed(data)
        entry = _entry(parse_object(data))
    except (Malformed, CommandRejected) as error:
        raise CorruptLog(f"commit log slot {slot}: {error}") from error
    if entry.slot != slot:
        raise CorruptLog(f"commit log slot {slot} holds the entry of slot {entry.slot}")
    return entry


def fitted(commit: Commit) -> Commit:
    """The commit without those metrics, then datasets, at the end of their lists that an entry has no room for."""
    while len(canonical_json(to_json(commit))) > MAX_COMMIT_BODY_BYTES:
        if commit.metrics:
            commit = replace(commit, metrics=commit.metrics[:-1])
        elif commit.dataset_digests:
            commit = replace(commit, dataset_digests=commit.dataset_digests[:-1])
        else:
            raise CommandRejected("the commit has names or digests too long for a log entry")
    return commit


def shortened(text: str) -> str:
    """The text, cut to what a log entry has room for."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def _refuse_changed(data: bytes) -> None:
    found = _CHECK.search(data)
    blank = _CHECK.sub(b'"check":"%s"' % (b"0" * _CHECK_DIGITS), data, count=1)
    if found is None or found[1] != _check(blank):
        raise Malformed("its check sum does not match: bytes were changed")


def _check(blank: bytes) -> bytes:
    return hashlib.sha256(blank).hexdigest()[:_CHECK_DIGITS].encode()


def _entry(content: dict[str, Json]) -> LogEntry:
    if content.get("format") != _FORMAT:
        raise Malformed(f"format {content.get('format')!r} is not known here")
    kind = _KINDS.get(str(content.get("kind")))
    if kind is None:
        raise Malformed(f"kind {content.get('kind')!r} is not known here")
    envelope = from_json(_Envelope, content, "entry")
    return LogEntry(
        slot=envelope.slot,
        at_ms=envelope.at_ms,
        writer=envelope.writer,
        token=envelope.token,
        body=from_json(kind, content.get("body"), "body"),
        head=envelope.head,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Envelope:
    slot: int
    at_ms: int
    writer: str
    token: str
    head: Head
