"""Kafka's default partitioner, so that every client agrees where a key lives."""

from __future__ import annotations

_SEED = 0x9747B28C
_MIX = 0x5BD1E995
_MASK = 0xFFFFFFFF


def partition_of(key: bytes, count: int) -> int:
    """Return the partition of a key among ``count`` partitions, as Kafka's Java client computes it."""
    return (murmur2(key) & 0x7FFFFFFF) % count


def murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bits, with Kafka's seed (org.apache.kafka.common.utils.Utils)."""
    length = len(data)
    state = _SEED ^ length
    whole = length - length % 4
    for i in range(0, whole, 4):
        word = int.from_bytes(data[i : i + 4], "little") * _MIX & _MASK
        word = (word ^ word >> 24) * _MIX & _MASK
        state = state * _MIX & _MASK ^ word
    if tail := data[whole:]:
        state = (state ^ int.from_bytes(tail, "little")) * _MIX & _MASK
    state = (state ^ state >> 13) * _MIX & _MASK
    return state ^ state >> 15
