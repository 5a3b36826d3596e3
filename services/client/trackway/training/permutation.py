"""A fixed shuffle of 0 … n-1 that any position can be asked of, without ever building the whole order.

A balanced Feistel network over the next power of four, walked until it lands inside the range. Written out here,
not taken from a library's generator, because a run must find the same order again under any later version.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROUNDS = 8
_MASK_64 = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15

Integers = NDArray[np.uint64]


def shuffled(positions: Integers, *, length: int, key: int) -> Integers:
    """The items at these positions of the order that ``key`` names; a bijection of ``range(length)``."""
    half_bits = max(1, -(-(length - 1).bit_length() // 2))
    keys = _round_keys(key)
    items = _feistel(positions, half_bits, keys)
    while (outside := items >= length).any():
        items[outside] = _feistel(items[outside], half_bits, keys)
    return items


def mixed(*numbers: int) -> int:
    """A 64-bit number that depends on all of these and on their order."""
    state = 0
    for number in numbers:
        state = _splitmix(state ^ (number & _MASK_64))
    return state


def _round_keys(key: int) -> list[int]:
    keys = []
    for number in range(ROUNDS):
        keys.append(_splitmix(key ^ number))
        key = _splitmix(key)
    return keys


def _feistel(positions: Integers, half_bits: int, keys: list[int]) -> Integers:
    shift, mask = np.uint64(half_bits), np.uint64(2**half_bits - 1)
    left, right = positions >> shift, positions & mask
    for key in keys:
        left, right = right, left ^ (_splitmix_all(right + np.uint64(key)) & mask)
    return (left << shift) | right


def _splitmix(value: int) -> int:
    """One step of SplitMix64 (Steele, Lea, Flood 2014)."""
    value = (value + _GOLDEN) & _MASK_64
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return value ^ (value >> 31)


def _splitmix_all(values: Integers) -> Integers:
    values = values + np.uint64(_GOLDEN)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
