"""Poison in any topic goes to the dead letters with its origin, and stops nobody."""

from __future__ import annotations

import asyncio
from collections import Counter

from trackway_common.events import RunPhase
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.settings import KafkaSettings
from trackway_common.topics import COMMANDS, DLQ, FACT_TOPICS, SIGNALS, TELEMETRY

from tests.support.runs import ended, follow, spec, submit
from tests.support.stack import wait_until

POISON = b"\xffpoison of the test"


async def poison_everything(bootstrap: str) -> list[tuple[str, int, int]]:
    """Append garbage to every partition of each topic; return where it lies."""
    log = KafkaEventLog(KafkaSettings(bootstrap=bootstrap))
    try:
        topics = (*FACT_TOPICS, COMMANDS, TELEMETRY, SIGNALS)
        return [
            (topic, partition, await log.append(topic, partition, b"k", POISON, ()))
            for topic in topics
            for partition in range(await log.partition_count(topic))
        ]
    finally:
        await log.close()


async def buried(bootstrap: str) -> list[tuple[str, int, int]]:
    """Origins of the dead letters that hold our poison."""
    log = KafkaEventLog(KafkaSettings(bootstrap=bootstrap))
    try:
        ends, found = await log.end_offsets(DLQ), []
        begins = await log.begin_offsets(DLQ)
        left = sum(ends.values()) - sum(begins.values())
        if left == 0:
            return []
        async for batch in log.tail(DLQ, begins):
            for record in batch:
                left -= 1
                headers = {name: value.decode() for name, value in record.headers}
                if record.value == POISON:
                    partition, offset = int(headers["original_partition"]), int(headers["original_offset"])
                    found.append((headers["original_topic"], partition, offset))
            if left <= 0:
                return found
    finally:
        await log.close()
    raise AssertionError


def test_poison_is_buried_once_and_a_run_still_succeeds(stack, client, tmp_path):
    planted = asyncio.run(poison_everything(stack.kafka))
    run_id = submit(client, spec(tmp_path, hyperparameters={"steps": 5}))
    follow(client, run_id)
    assert ended(client, run_id).phase is RunPhase.SUCCEEDED
    wait_until(lambda: set(planted) <= set(asyncio.run(buried(stack.kafka))), 30, what="poison to be buried")
    stack.wait_restarted(stack.kill("observer"))
    counted = Counter(asyncio.run(buried(stack.kafka)))
    assert [counted[origin] for origin in planted] == [1] * len(planted)
    assert client.attempts(run_id)
