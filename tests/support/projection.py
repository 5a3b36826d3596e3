"""Rebuild the read model from the log beside the live one, and hold the two against each other."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import uuid

from trackway.local.state import read_endpoints
from trackway_common.clickhouse import ClickHouse
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.settings import ClickHouseSettings, KafkaSettings
from trackway_common.topics import FACT_TOPICS, TELEMETRY
from trackway_observer.projection.compare import Difference, compare_projections

from tests.support.stack import Stack, wait_until

ROUNDS = 5
"""A checkpoint may age or be deleted meanwhile; then the log has grown, and both are read again."""


def check_views_equal_a_rebuild(stack: Stack) -> None:
    """Assert that every view of the live projection equals one made from the log alone."""
    for _ in range(ROUNDS):
        before = asyncio.run(log_ends(stack.kafka))
        wait_projected(stack)
        differences = rebuild_and_compare(stack)
        if asyncio.run(log_ends(stack.kafka)) == before:
            assert differences == (), "\n".join(map(str, differences))
            return
    raise AssertionError(f"the log did not stand still for one of {ROUNDS} rounds")


def wait_projected(stack: Stack) -> None:
    """Wait until the live projection has seen what the log holds."""
    wait_until(lambda: records_behind(stack) == 0, 60, what="the projection to catch up")


def records_behind(stack: Stack) -> int:
    """Records of the log that the live projection has not seen."""
    with stack.client() as client:
        return client.query("select count() from training_runs").records_behind


def rebuild_and_compare(stack: Stack) -> tuple[Difference, ...]:
    """Project the log into a new database of the stack's own engine, and compare."""
    name = f"rebuilt_{uuid.uuid4().hex[:8]}"
    endpoints = read_endpoints(stack.state)
    environment = os.environ | {
        "TRACKWAY_KAFKA__BOOTSTRAP": endpoints["kafka"],
        "TRACKWAY_CLICKHOUSE__URL": endpoints["clickhouse"],
        "TRACKWAY_STORE__URL": stack.folder.objects.as_uri(),
    }
    command = [sys.executable, "-m", "trackway_observer.rebuild", "--database", name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return asyncio.run(compare(endpoints["clickhouse"], name))


async def compare(url: str, other: str) -> tuple[Difference, ...]:
    live = ClickHouse(ClickHouseSettings(url=url))
    try:
        return await compare_projections(live, other)
    finally:
        await live.close()


async def log_ends(bootstrap: str) -> dict[str, dict[int, int]]:
    """Where every fact topic and the telemetry end."""
    log = KafkaEventLog(KafkaSettings(bootstrap=bootstrap))
    try:
        return {topic: await log.end_offsets(topic) for topic in (*FACT_TOPICS, TELEMETRY)}
    finally:
        await log.close()
