"""A run's log in a file: what `trackway log export --run` writes, packed."""

from __future__ import annotations

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from trackway.log_export import ExportOptions, export_log, log_opener
from trackway_common.errors import NotFound
from trackway_common.log_copy.manifest import Scope
from trackway_common.log_copy.reader import LogCopy
from trackway_common.object_store import BlobStore, LocalObjectStore

from tests.faults.corpus.results import log_file
from tests.support.stack import Stack

BLOBS_BYTES = 1 << 20


def keep_log(stack: Stack, run_id: str, observations: frozenset[str], file: Path) -> None:
    """Export a run that has ended; of blobs only those that hold what the classifier saw."""
    blobs = BlobStore(LocalObjectStore(stack.folder.objects))

    def blob(digest: str) -> bytes:
        if digest not in observations:
            raise NotFound(digest)
        return blobs.get(digest)

    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="corpus-log-") as folder:
        exported = Path(folder) / "log"
        options = ExportOptions(scope=Scope(run_id=run_id), blob_bytes=BLOBS_BYTES)
        export_log(log_opener(stack.kafka, stack.state), exported, options, blob=blob)
        with tarfile.open(file, "w:xz") as packed:
            packed.add(exported, arcname="log")


@contextmanager
def kept_log(results: Path, name: str) -> Iterator[LogCopy]:
    """A fault's log, for reading."""
    with tempfile.TemporaryDirectory(prefix="corpus-log-") as folder:
        with tarfile.open(log_file(results, name)) as packed:
            packed.extractall(folder, filter="data")
        with closing(LogCopy(Path(folder) / "log")) as copy:
            yield copy
