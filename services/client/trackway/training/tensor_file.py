"""Tensors in one buffer, in safetensors layout: written straight into staging memory, read without a copy.

Layout: header size (8 bytes, little-endian), header (JSON: name → dtype, shape, offsets; ``__metadata__``), data
without holes. Source: github.com/huggingface/safetensors, README, "Format".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from trackway.training.errors import CheckpointCorrupt

ALIGNMENT = 64
"""Of the data's begin; tensors follow by falling element size, so each is aligned to its own."""
METADATA = "__metadata__"
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "C64": torch.complex64,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A tensor and where it goes in the file."""

    tensor: torch.Tensor
    begin: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFile:
    """A file that is planned but not yet written: nothing was copied."""

    header: bytes
    placed: tuple[Placed, ...]
    size_bytes: int

    def write(self, buffer: memoryview) -> None:
        """Copy everything into the first ``size_bytes`` of the buffer; from any device."""
        buffer[: len(self.header)] = self.header
        if self.size_bytes == len(self.header):
            return
        whole = torch.frombuffer(buffer, dtype=torch.uint8, count=self.size_bytes)
        for item in self.placed:
            if item.end > item.begin:
                target = whole[item.begin : item.end].view(item.tensor.dtype).view(item.tensor.shape)
                target.copy_(item.tensor)


def plan_file(tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> TensorFile:
    """Lay the tensors out.

    Raises:
        TypeError: a tensor's type has no name in the format.
    """
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    entries: dict[str, object] = {METADATA: dict(metadata)}
    offset = 0
    for name, tensor in ordered:
        end = offset + tensor.numel() * tensor.element_size()
        entries[name] = {"dtype": _dtype_name(name, tensor), "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    header = _framed(json.dumps(entries, separators=(",", ":")).encode())
    placed, begin = [], len(header)
    for _, tensor in ordered:
        end = begin + tensor.numel() * tensor.element_size()
        placed.append(Placed(tensor=tensor, begin=begin, end=end))
        begin = end
    return TensorFile(header=header, placed=tuple(placed), size_bytes=begin)


def read_file(buffer: bytearray) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Tensors of a file, as views of the buffer, and its metadata.

    Raises:
        CheckpointCorrupt: the bytes are no such file.
    """
    try:
        header_end = 8 + int.from_bytes(buffer[:8], "little")
        entries = json.loads(bytes(buffer[8:header_end]))
        metadata = entries.pop(METADATA, {})
        data = memoryview(buffer)[header_end:]
        return {name: _view(data, entry) for name, entry in entries.items()}, metadata
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise CheckpointCorrupt(f"no safetensors file: {type(error).__name__}: {error}") from error


def _framed(body: bytes) -> bytes:
    padded = body + b" " * (-(8 + len(body)) % ALIGNMENT)
    return len(padded).to_bytes(8, "little") + padded


def _dtype_name(name: str, tensor: torch.Tensor) -> str:
    if tensor.dtype not in NAMES:
        raise TypeError(f"{name} has type {tensor.dtype}, which a checkpoint can't keep")
    return NAMES[tensor.dtype]


def _view(data: memoryview, entry: Mapping[str, object]) -> torch.Tensor:
    dtype, shape, offsets = DTYPES[str(entry["dtype"])], entry["shape"], entry["data_offsets"]
    if not isinstance(shape, list) or not isinstance(offsets, list):
        raise TypeError("shape and offsets are lists")
    begin, end = offsets
    if not 0 <= begin <= end <= len(data):
        raise ValueError(f"offsets {begin} to {end} of {len(data)} bytes")
    if begin == end:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(data[begin:end], dtype=dtype).view(shape)
