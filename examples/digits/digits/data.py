"""Pictures and labels from the snapshot's files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch

PIXELS = 64
DEEPEST = 16.0
"""Largest pixel value in the files."""


def tables(files: Iterable) -> Iterator[tuple[str, torch.Tensor]]:
    """Each file's path and its lines as a table [lines, 65]."""
    for file in files:
        rows = [[float(x) for x in line.split()] for line in file.read_bytes().decode().splitlines()]
        yield file.path, torch.tensor(rows)


def load(files: Iterable) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures [n, 64] in 0 to 1 and labels [n]."""
    table = torch.cat([rows for _, rows in tables(files)])
    return table[:, :PIXELS] / DEEPEST, table[:, PIXELS].long()


def evaluation_samples(files: Iterable, split: str, limit: int) -> Iterator[dict]:
    """Samples for a classification task, sliced by label."""
    for path, table in tables(files):
        for number, row in enumerate(table):
            label = int(row[PIXELS])
            yield {"id": f"{path}:{number}", "input": row[:PIXELS] / DEEPEST, "target": label, "label": label}
