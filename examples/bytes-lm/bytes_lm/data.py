"""Python source as bytes: windows to train and be measured on, and lines to complete."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch

WINDOW = 128
"""Bytes that a held-out window predicts; also the most that the model has seen at once."""
PROMPT = 64
LINE = (24, 80)
"""Lines of this many bytes are completed: long enough to begin, short enough to end."""


class File(Protocol):
    """A file of a snapshot, checked when it is read."""

    @property
    def path(self) -> str: ...

    def read_bytes(self) -> bytes: ...


def training_bytes(files: Sequence[File]) -> torch.Tensor:
    """All modules one after the other, as a tensor of byte values."""
    text = b"\n".join(file.read_bytes() for file in files if file.path.endswith(".py"))
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def window_count(text_N: torch.Tensor, context: int) -> int:
    """Whole windows in the text, each with the byte that follows it."""
    return (len(text_N) - 1) // context


def batch(text_N: torch.Tensor, indices: Sequence[int], context: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets, each (len(indices), context)."""
    rows = torch.stack([text_N[i * context : (i + 1) * context + 1] for i in indices]).long()
    return rows[:, :-1], rows[:, 1:]


def evaluation_windows(files: Sequence[File], split: str, limit: int) -> Iterator[Mapping[str, Any]]:
    """Held-out windows, spread evenly over all modules."""
    places = [(file, start) for file in files for start in _window_starts(file)]
    for file, start in _spread(places, limit):
        text = file.read_bytes()
        row = torch.tensor(list(text[start : start + WINDOW + 1]))
        yield {"id": f"{file.path}@{start}", "input": row[:-1], "target": row[1:], "bytes": WINDOW}


def lines(files: Sequence[File], split: str, limit: int) -> Iterator[Mapping[str, Any]]:
    """Half a held-out line and what stands before it; to be completed to the line's end."""
    places = [(file, start, end) for file in files for start, end in _line_places(file)]
    for file, start, end in _spread(places, limit):
        text = file.read_bytes()
        middle = (start + end) // 2
        yield {
            "id": f"{file.path}@{middle}",
            "prompt": list(text[middle - PROMPT : middle]),
            "target": list(text[middle:end]),
        }


def decode(tokens: Sequence[int]) -> str:
    """Bytes as text, what is no UTF-8 replaced."""
    return bytes(tokens).decode("utf-8", errors="replace")


def _window_starts(file: File) -> range:
    return range(0, len(file.read_bytes()) - WINDOW, WINDOW) if file.path.endswith(".py") else range(0)


def _line_places(file: File) -> Iterator[tuple[int, int]]:
    """Begin and end of each line that can be completed, with room for a prompt before its middle."""
    if not file.path.endswith(".py"):
        return
    start = 0
    for line in file.read_bytes().splitlines(keepends=True):
        end = start + len(line.rstrip(b"\r\n"))
        if LINE[0] <= end - start <= LINE[1] and (start + end) // 2 >= PROMPT:
            yield start, end
        start += len(line)


def _spread(places: Sequence[Any], limit: int) -> Iterator[Any]:
    count = min(limit or len(places), len(places))
    return (places[i * len(places) // count] for i in range(count))
