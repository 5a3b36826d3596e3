"""Rows of evaluations' samples, read from the Parquet shards that a verdict names by digest."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from trackway_common.errors import CommandRejected, CorruptLog
from trackway_common.events import EvaluationCompleted, SampleShard
from trackway_common.fact_reader import Judged
from trackway_common.ids import root_key
from trackway_common.object_store import BlobStore

from trackway_observer.projection.rows.row import Row

log = logging.getLogger(__name__)

MAX_SHARD_BYTES = 256 << 20
"""Larger shards stay in the store: the projection holds one in memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRow:
    TABLE: ClassVar[str] = "evaluation_samples_state"
    run_id: str
    evaluation_id: str
    task: str
    kind: str
    sample_id: str
    version: int
    metrics: Mapping[str, float]
    weight: float
    slices: Mapping[str, str]
    failed: bool
    error: str
    prompt: str
    output: str
    target: str


class EvaluationSamples:
    """Rows of the shards of a finished evaluation. Called again it gives the same: shards are named by digest."""

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    def __call__(self, judged: Judged) -> Iterator[Row]:
        """Yield the rows; a shard that is gone, damaged or too large is logged and left out.

        Raises:
            Unavailable: the store is away.
        """
        for index, fact in enumerate(judged.commit.facts):
            if isinstance(fact, EvaluationCompleted):
                run_id = root_key(judged.commit.stream).decode()
                for shard in fact.shards:
                    yield from self._shard(run_id, fact.evaluation_id, shard, judged.commit.first_seq + index)

    def _shard(self, run_id: str, evaluation_id: str, shard: SampleShard, version: int) -> list[SampleRow]:
        why = f"it is larger than {MAX_SHARD_BYTES} bytes"
        if shard.size_bytes <= MAX_SHARD_BYTES:
            try:
                table = pq.read_table(io.BytesIO(self._blobs.get(shard.digest)))
                return [_row(sample, run_id, evaluation_id, shard, version) for sample in table.to_pylist()]
            except (CommandRejected, CorruptLog, pa.ArrowException, TypeError, ValueError) as error:
                why = str(error)
        log.warning("samples left out", extra={"digest": shard.digest, "task": shard.task, "why": why})
        return []


def _row(sample: Mapping[str, Any], run_id: str, evaluation_id: str, shard: SampleShard, version: int) -> SampleRow:
    return SampleRow(
        run_id=run_id,
        evaluation_id=evaluation_id,
        task=shard.task,
        kind=shard.kind,
        sample_id=_text(sample.get("id")),
        version=version,
        metrics={str(name): float(value) for name, value in _known(sample.get("metrics"))},
        weight=float(sample.get("weight") or 0.0),
        slices={str(name): str(value) for name, value in _known(sample.get("slices"))},
        failed=bool(sample.get("failed")),
        error=_text(sample.get("error")),
        prompt=_text(sample.get("prompt")),
        output=_text(sample.get("output")),
        target=_text(sample.get("target")),
    )


def _known(pairs: Iterable[tuple[str, Any]] | None) -> Iterator[tuple[str, Any]]:
    return ((key, value) for key, value in pairs or () if value is not None)


def _text(value: object) -> str:
    return "" if value is None else str(value)
