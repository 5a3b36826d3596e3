"""Images from CSV files: a label and 64 pixels of 0 … 16 a line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch

BRIGHTEST = 16


class File(Protocol):
    """A file of a snapshot, checked when it is read."""

    @property
    def path(self) -> str: ...

    def read_bytes(self) -> bytes: ...


def load(files: Sequence[File]) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (N, 64) in 0 … 1 and labels (N)."""
    rows = [row for file in files for row in _rows(file)]
    images_NP = torch.tensor([row[1:] for row in rows], dtype=torch.float32) / BRIGHTEST
    return images_NP, torch.tensor([row[0] for row in rows])


def evaluation_samples(files: Sequence[File], split: str, limit: int) -> Iterator[Mapping[str, Any]]:
    """Each image with its label, which is also what the pack slices by."""
    for file in files:
        for number, (label, *pixels) in enumerate(_rows(file)):
            yield {
                "id": f"{file.path}:{number}",
                "input": torch.tensor(pixels, dtype=torch.float32) / BRIGHTEST,
                "target": label,
                "label": label,
            }


def _rows(file: File) -> Iterator[list[int]]:
    for row in csv.reader(io.StringIO(file.read_bytes().decode())):
        yield [int(value) for value in row]
