"""Windows of bytes from the snapshot's files; token = byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch

VOCABULARY = 256
EVALUATION_CONTEXT = 96
"""Tokens of a window in the evaluation pack; the pack and the model's context agree on it."""
PROMPT, ANSWER = 48, 16
"""Bytes shown and bytes to continue with, of a completion sample."""


def corpus(files: Iterable) -> torch.Tensor:
    """All text, one file after the other: bytes [n]."""
    text = b"\n".join(file.read_bytes() for file in files)
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def window(text: torch.Tensor, number: int, context: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Input and target [context] of one window; neighbours do not overlap but for one byte."""
    start = number * context
    tokens = text[start : start + context + 1].long()
    return tokens[:-1], tokens[1:]


def count_windows(text: torch.Tensor, context: int) -> int:
    """Windows that the text holds."""
    return (len(text) - 1) // context


def evaluation_windows(files: Iterable, split: str, limit: int) -> Iterator[dict]:
    """Samples for bits per byte: the first window of each file that is long enough."""
    for file in files:
        text = corpus([file])
        if count_windows(text, EVALUATION_CONTEXT):
            inputs, targets = window(text, 0, EVALUATION_CONTEXT)
            yield {"id": file.path, "input": inputs, "target": targets, "bytes": EVALUATION_CONTEXT}


def evaluation_prompts(files: Iterable, split: str, limit: int) -> Iterator[dict]:
    """Samples for completion: a prompt from the middle of a file and the bytes that follow it."""
    for file in files:
        content = file.read_bytes()
        middle = len(content) // 2
        prompt, answer = content[middle - PROMPT : middle], content[middle : middle + ANSWER]
        if len(prompt) == PROMPT and len(answer) == ANSWER:
            yield {"id": file.path, "prompt": list(prompt), "target": list(answer)}


def decode(tokens: Sequence[int]) -> str:
    """Tokens as text; broken UTF-8 shows as replacement characters."""
    return bytes(tokens).decode(errors="replace")
