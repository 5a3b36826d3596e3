"""Gangs smaller than the whole one that a run can do with."""

from __future__ import annotations


def smaller_gangs(whole: int, least: int) -> tuple[int, ...]:
    """World sizes below the whole one, largest first; empty where only the whole gang will do: ``least`` is 0.

    Divisors of the whole size only: a batch that the whole gang can share is then shared by the smaller one too.
    """
    return tuple(size for size in range(whole - 1, max(least, 1) - 1, -1) if least and whole % size == 0)
