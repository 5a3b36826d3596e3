"""A real broker's log, copied by the command line and explained without the broker."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from trackway_common.kafka_log import KafkaEventLog
from trackway_common.settings import KafkaSettings
from trackway_common.testing.run_facts import RUN_ID, append_commits
from trackway_common.testing.run_stories import killed_and_resumed

from tests.support.stack import TRACKWAY


def trackway(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(TRACKWAY), *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_a_run_is_explained_from_a_copy_of_a_real_log(broker: str, tmp_path: Path) -> None:
    asyncio.run(_fill(broker))
    folder = tmp_path / "log"
    made = trackway("log", "export", str(folder), "--run", RUN_ID[:13], "--kafka", broker)
    assert made.returncode == 0, made.stderr
    assert trackway("log", "verify", str(folder)).returncode == 0
    told = trackway("explain", f"{RUN_ID[:13]}/1", "--log", str(folder), "--endpoint", "127.0.0.1:1")
    assert told.stdout.startswith(f"UNKNOWN_KILL  attempt 1 of run {RUN_ID}"), told.stderr
    assert trackway("log", "export", str(folder), "--kafka", broker).returncode == 2


async def _fill(broker: str) -> None:
    log = KafkaEventLog(KafkaSettings(bootstrap=broker))
    try:
        await append_commits(log, killed_and_resumed().commits)
    finally:
        await log.close()
