"""The Ray head dies under a run: the attempt ends as NODE_LOST, and the next one runs on the new head."""

from __future__ import annotations

from pathlib import Path

import pytest
from trackway_common import events as e
from trackway_common.events import TerminationReason as Reason
from trackway_common.ids import uuid7

from tests.integration.agent_stack import Stack
from tests.ray_head import kill_head, ray_head

COUNT = """
import time
for step in range(100_000):
    print(step, flush=True)
    time.sleep(0.05)
"""


async def test_a_head_that_was_killed_and_came_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ray_head(cpus=2) as head:
        for name, value in head.environment.items():
            monkeypatch.setenv(name, value)
        stack = Stack(tmp_path, head, uuid7())
        async with stack.agent():
            await stack.submit(steps=1, script=COUNT)
            await stack.place(1)
            started = await stack.fact(e.AttemptStarted, 1)
            kill_head(head)
            with ray_head(cpus=2, again=head):
                ended = await stack.fact(e.AttemptEnded, 1)
                await stack.place(2)
                again = await stack.fact(e.AttemptStarted, 2)
    assert ended.reason is Reason.NODE_LOST
    assert (ended.ended_at - started.started_at).total_seconds() < 60
    assert started.cluster_id != again.cluster_id
    assert started.cluster_id in ended.evidence[0].excerpt
    assert [rank.exit_code for rank in ended.ranks] == []
