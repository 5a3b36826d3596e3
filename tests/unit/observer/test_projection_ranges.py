"""Ranges are cut so that an interrupted one is cut again in the same way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from trackway_common.event_log import Record
from trackway_common.testing.run_facts import START
from trackway_common.topics import RUNS
from trackway_observer.projection import ranges
from trackway_observer.projection.ledger import OffsetRange
from trackway_observer.projection.ranges import RangeCutter, range_of


def records(first: int, last: int, size: int = 1) -> list[Record]:
    return [
        Record(topic=RUNS, partition=3, offset=o, key=b"", value=b"x" * size, headers=(), appended_at=START)
        for o in range(first, last + 1)
    ]


def pending(first: int, last: int) -> OffsetRange:
    return OffsetRange(topic=RUNS, partition=3, first=first, last=last, appended_at=START)


def offsets(cut: object) -> list[tuple[int, int]]:
    return [(r[0].offset, r[-1].offset) for r in cut]  # type: ignore[attr-defined]


def test_a_range_spans_its_records() -> None:
    assert range_of(records(4, 9)) == pending(4, 9)


def test_what_comes_together_is_one_range() -> None:
    assert offsets(RangeCutter().cut(records(0, 9))) == [(0, 9)]


def test_large_batches_are_cut_by_count_and_by_size(monkeypatch) -> None:
    monkeypatch.setattr(ranges, "MAX_RECORDS", 4)
    assert offsets(RangeCutter().cut(records(0, 9))) == [(0, 3), (4, 7), (8, 9)]
    monkeypatch.setattr(ranges, "MAX_BYTES", 250)
    assert offsets(RangeCutter().cut(records(0, 4, size=100))) == [(0, 1), (2, 3), (4, 4)]


def test_a_record_above_the_limit_is_a_range_of_its_own(monkeypatch) -> None:
    monkeypatch.setattr(ranges, "MAX_BYTES", 10)
    assert offsets(RangeCutter().cut(records(0, 1, size=100))) == [(0, 0), (1, 1)]


@given(st.integers(0, 20), st.lists(st.integers(1, 7), max_size=8))
def test_an_interrupted_range_is_cut_alike_however_its_records_arrive(length: int, sizes: list[int]) -> None:
    last = 10 + length
    cutter, cut, at = RangeCutter(pending(10, last)), [], 10
    for size in (*sizes, 60):
        cut += offsets(cutter.cut(records(at, at + size - 1)))
        at += size
    assert cut[0] == (10, last)
    assert [first for first, _ in cut[1:]] == [end + 1 for _, end in cut[:-1]]
    assert cut[-1][1] == at - 1


def test_records_behind_a_forgotten_range_are_not_held_up() -> None:
    assert offsets(RangeCutter(pending(10, 19)).cut(records(25, 30))) == [(25, 30)]


def test_nothing_is_cut_while_the_interrupted_range_is_not_whole() -> None:
    cutter = RangeCutter(pending(10, 19))
    assert offsets(cutter.cut(records(10, 15))) == []
    assert offsets(cutter.cut([])) == []
    assert offsets(cutter.cut(records(16, 22))) == [(10, 19), (20, 22)]
