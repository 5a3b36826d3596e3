"""Reads one run out of a copied log, in the time that one run takes, however many there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from trackway_common.codec import CorruptRecord, decode_commit
from trackway_common.commit import Commit
from trackway_common.errors import CommandRejected, NotFound
from trackway_common.events import PoolObserved, RunPhase
from trackway_common.history.explain import Surroundings
from trackway_common.history.model import RunHistory
from trackway_common.history.receipt.build import LastSeen
from trackway_common.history.wording import short_id, time_of_ms
from trackway_common.ids import pool_stream
from trackway_common.log_copy.index import Entry, IndexReader, RunLine
from trackway_common.log_copy.manifest import INDEX, read_manifest, segment_path
from trackway_common.log_copy.segment import Copied, Standing, read_frame
from trackway_common.object_store.blobs import BlobStore
from trackway_common.object_store.local import LocalObjectStore

_HAPPENED = frozenset({Standing.ACCEPTED, Standing.CLAIMED})


class LogCopy:
    """A copied log, for reading.

    Raises:
        CommandRejected: the folder holds no copied log, or one that this build can't read.
    """

    def __init__(self, folder: Path, store: Path | None = None) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        with _damage_told(folder):
            self._index = IndexReader(folder / INDEX)
        self._stores = [BlobStore(LocalObjectStore(path)) for path in (folder, store) if path and path.is_dir()]

    def close(self) -> None:
        """Let go of the index."""
        self._index.close()

    def run_id(self, beginning: str) -> str:
        """Full id of the run that this is, or is the beginning of.

        Raises:
            NotFound: the log has no such run.
            CommandRejected: there are several.
        """
        with _damage_told(self.folder):
            found = self._index.runs_beginning(beginning)
        if beginning not in found and len(found) > 1:
            raise CommandRejected(f"several runs begin with {beginning!r}; write more of the id", reason="AMBIGUOUS")
        if not found or not beginning:
            raise NotFound(f"this log has no run {beginning!r}; `trackway log runs {self.folder}` shows those it has")
        return found[0]

    def runs(self) -> list[RunLine]:
        """Every run of the log, oldest first."""
        with _damage_told(self.folder):
            return self._index.runs()

    def commits(self, run_id: str) -> tuple[Commit, ...]:
        """Everything that was accepted about a run, in the order of its appending."""
        with _damage_told(self.folder):
            return in_order([c for c in self._read(self._index.entries(run_id)) if c.standing in _HAPPENED])

    def refused(self, run_id: str) -> int:
        """Records about a run that the acceptance rule refused: what a writer that was fenced off tried."""
        with _damage_told(self.folder):
            return sum(1 for entry in self._index.entries(run_id) if entry.standing == Standing.REJECTED)

    def surroundings(self, history: RunHistory) -> Surroundings:
        """What the run's own facts can't say, as far as the copy knows it; a copy of one run knows no other."""
        with _damage_told(self.folder):
            heard = self._index.heartbeats(history.run_id)
            last_seen = {number: LastSeen(at=time_of_ms(at_ms), step=step) for number, at_ms, step in heard}
            spec, waits = history.spec, history.phase is RunPhase.QUEUED
            if spec is None or not waits or not self.manifest.scope.everything:
                return Surroundings(last_seen=last_seen)
            holding = self._index.holding(spec.compute.pool)
            return Surroundings(
                ahead=self._index.queued_before(spec.compute.pool, history.run_id),
                holders=tuple(f"{short_id(run_id)}/{attempt}" for run_id, attempt in holding),
                pool=self._pool(spec.compute.pool),
                last_seen=last_seen,
            )

    def _pool(self, pool: str) -> PoolObserved | None:
        """What a pool last said of itself."""
        accepted = [entry for entry in self._index.entries(pool_stream(pool)) if entry.standing == Standing.ACCEPTED]
        newest = in_order(self._read(accepted[-1:]))
        facts = [fact for commit in newest for fact in commit.facts if isinstance(fact, PoolObserved)]
        return facts[-1] if facts else None

    def blob(self, digest: str) -> bytes:
        """The blob of a digest: of the copy's own, else of the store beside it.

        Raises:
            NotFound: neither has it.
            CorruptLog: what is stored is not what the digest says.
        """
        for store in self._stores:
            with suppress(NotFound):
                return store.get(digest)
        raise NotFound(f"no copy of blob {digest} is at hand; name a store with --store, or export with --blobs")

    def _read(self, entries: Sequence[Entry]) -> list[Copied]:
        found: list[Copied] = []
        for (topic, partition), group in groupby(entries, key=attrgetter("topic", "partition")):
            with (self.folder / segment_path(topic, partition)).open("rb") as file:
                found += [read_frame(file, entry.position, entry.size, topic) for entry in group]
        return found


@contextmanager
def _damage_told(folder: Path) -> Iterator[None]:
    try:
        yield
    except (CorruptRecord, OSError, ValueError) as error:
        raise CommandRejected(
            f"{folder} is damaged ({error}); `trackway log verify {folder}` says where: copy or export it again",
            reason="DAMAGED",
        ) from error


def in_order(copied: Sequence[Copied]) -> tuple[Commit, ...]:
    """Commits of several streams by the broker's time; within one stream by nothing but its order."""
    latest: dict[str, datetime] = {}
    keyed: list[tuple[datetime, Commit]] = []
    for item in copied:
        commit = decode_commit(item.record.value)
        at = max(item.record.appended_at, latest.get(commit.stream, item.record.appended_at))
        latest[commit.stream] = at
        keyed.append((at, commit))
    return tuple(commit for _, commit in sorted(keyed, key=lambda pair: pair[0]))
