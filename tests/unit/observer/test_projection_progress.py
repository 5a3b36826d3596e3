"""Waiting for the projection, and measuring its lag."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from trackway_common.testing.run_facts import START
from trackway_observer.projection.lag import lag_rows
from trackway_observer.projection.progress import Place, Progress

A, B = Place("runs", 0), Place("runs", 1)


async def test_who_waits_is_woken_when_all_ends_are_reached() -> None:
    progress = Progress()
    waiting = asyncio.create_task(progress.reach({A: 3, B: 1}, timeout_s=10))
    await progress.advance(A, 3)
    assert not waiting.done()
    await progress.advance(B, 5)
    assert await waiting == 0


async def test_who_waits_too_long_learns_how_much_is_missing() -> None:
    progress = Progress()
    await progress.advance(A, 3)
    assert await progress.reach({A: 10, B: 2}, timeout_s=0.01) == 9


async def test_positions_never_go_back() -> None:
    progress = Progress()
    await progress.advance(A, 5)
    await progress.advance(A, 2)
    assert progress.position(A) == 5


async def test_lag_is_counted_in_records_and_in_seconds_since_the_newest_projected_one() -> None:
    progress = Progress()
    await progress.advance(A, 3, START)
    await progress.advance(B, 1, START)
    behind, at_end = lag_rows(progress, {A: 10, B: 1}, START + timedelta(seconds=5))
    assert (behind.records_behind, behind.seconds_behind) == (7, 5.0)
    assert (at_end.records_behind, at_end.seconds_behind) == (0, 0.0)
