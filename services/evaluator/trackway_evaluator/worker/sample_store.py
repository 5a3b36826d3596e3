"""Scored samples of one task on disk: Parquet parts that survive the process, and the shards made of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from trackway_evaluator.protocol import WrittenShard
from trackway_evaluator.worker.sample import Row

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("metrics", pa.map_(pa.string(), pa.float64())),
        ("weight", pa.float64()),
        ("slices", pa.map_(pa.string(), pa.string())),
        ("failed", pa.bool_()),
        ("error", pa.string()),
        ("prompt", pa.string()),
        ("output", pa.string()),
        ("target", pa.string()),
    ]
)


class SampleStore:
    """Parts of one task; a part is there whole or not at all, and a sample is scored once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._rows = {row.id: row for part in sorted(folder.glob("part-*.parquet")) for row in _read(part)}
        self._parts = len(list(folder.glob("part-*.parquet")))

    def get(self, sample_id: str) -> Row | None:
        """The row of a sample that an earlier try scored, or this one."""
        return self._rows.get(sample_id)

    def append(self, rows: Sequence[Row]) -> None:
        """Keep rows before anything else happens to them."""
        self._parts += 1
        _write(self._folder / f"part-{self._parts:06d}.parquet", rows)
        self._rows |= {row.id: row for row in rows}


def write_shard(root: Path, task: str, kind: str, rows: Sequence[Row]) -> WrittenShard:
    """Write one Parquet file of a task's result below the evaluation's folder."""
    path = Path("shards") / f"{task}.{kind}.parquet"
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    _write(root / path, rows)
    content = (root / path).read_bytes()
    return WrittenShard(
        task=task,
        kind=kind,
        path=str(path),
        sha256=hashlib.sha256(content).hexdigest(),
        rows=len(rows),
        size_bytes=len(content),
    )


def read_rows(path: Path) -> list[Row]:
    """Rows of a shard."""
    return _read(path)


def _read(path: Path) -> list[Row]:
    return [
        Row(**{**item, "metrics": dict(item["metrics"]), "slices": dict(item["slices"])})
        for item in pq.read_table(path, schema=SCHEMA).to_pylist()
    ]


def _write(path: Path, rows: Sequence[Row]) -> None:
    columns = {name: [_cell(getattr(row, name)) for row in rows] for name in SCHEMA.names}
    unfinished = path.with_name(f".{path.name}")
    pq.write_table(pa.table(columns, schema=SCHEMA), unfinished, compression="zstd")
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(path)


def _cell(value: object) -> object:
    return list(value.items()) if isinstance(value, dict) else value
