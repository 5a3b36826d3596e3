"""One contract for every event log: append, order, offsets, tail."""

from __future__ import annotations

import asyncio

import pytest
from trackway_common.errors import Unavailable
from trackway_common.event_log import EventLog
from trackway_common.topics import SIGNALS


async def take(log: EventLog, topic: str, positions: dict[int, int], count: int) -> list:
    """The next ``count`` records of a tail."""
    taken = []
    async with asyncio.timeout(20):
        async for batch in log.tail(topic, positions):
            taken.extend(batch)
            if len(taken) >= count:
                return taken
    raise AssertionError


async def test_offsets_grow_by_one_in_a_partition(log):
    start = (await log.end_offsets(SIGNALS))[0]
    offsets = [await log.append(SIGNALS, 0, b"k", bytes([i]), ()) for i in range(5)]
    assert offsets == list(range(start, start + 5))
    assert (await log.end_offsets(SIGNALS))[0] == start + 5


async def test_a_tail_gives_back_what_was_appended(log):
    start = (await log.end_offsets(SIGNALS))[1]
    headers = (("traceparent", b"00-x"), ("ce_id", b"1"))
    await log.append(SIGNALS, 1, b"key", b"value", headers)
    [record] = await take(log, SIGNALS, {1: start}, 1)
    assert (record.key, record.value, record.headers) == (b"key", b"value", headers)
    assert (record.topic, record.partition, record.offset) == (SIGNALS, 1, start)


async def test_a_tail_goes_on_with_later_records(log):
    start = (await log.end_offsets(SIGNALS))[2]
    reading = asyncio.create_task(take(log, SIGNALS, {2: start}, 3))
    for i in range(3):
        await log.append(SIGNALS, 2, b"", bytes([i]), ())
    assert [record.value for record in await reading] == [b"\x00", b"\x01", b"\x02"]


async def test_a_tail_reads_only_the_partitions_named(log):
    ends = await log.end_offsets(SIGNALS)
    await log.append(SIGNALS, 0, b"", b"other", ())
    await log.append(SIGNALS, 1, b"", b"mine", ())
    assert [record.value for record in await take(log, SIGNALS, {1: ends[1]}, 1)] == [b"mine"]


async def test_two_tails_see_the_same(log):
    start = (await log.end_offsets(SIGNALS))[0]
    for i in range(20):
        await log.append(SIGNALS, 0, b"", str(i).encode(), ())
    first, second = await asyncio.gather(*(take(log, SIGNALS, {0: start}, 20) for _ in range(2)))
    assert [r.offset for r in first] == [r.offset for r in second] == list(range(start, start + 20))


async def test_an_idle_tail_yields_empty_batches(log):
    ends = await log.end_offsets(SIGNALS)
    async with asyncio.timeout(20):
        async for batch in log.tail(SIGNALS, ends):
            assert list(batch) == []
            break


async def test_a_topic_that_is_not_there_is_unavailable(log):
    with pytest.raises(Unavailable, match=r"trackway\.nothing"):
        await log.partition_count("trackway.nothing")


async def test_begin_offsets_lie_before_the_ends(log):
    begins, ends = await log.begin_offsets(SIGNALS), await log.end_offsets(SIGNALS)
    assert begins.keys() == ends.keys()
    assert all(begins[p] <= ends[p] for p in ends)
