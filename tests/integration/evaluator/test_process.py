"""The evaluator as a process on a real broker, killed in the middle of an evaluation."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from trackway_common.codec import decode_commit
from trackway_common.event_log import EventLog
from trackway_common.events import (
    EvaluationCompleted,
    EvaluationFailed,
    EvaluationFailure,
    EvaluationStarted,
    NextMove,
    Verdict,
)
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.settings import KafkaSettings
from trackway_common.topics import EVALUATIONS, FACT_PARTITIONS

from tests.support.stack import running_stack

from .conftest import World
from .ordering import order_evaluation

F = TypeVar("F")
DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    for stack in running_stack(tmp_path_factory.mktemp("broker"), only=frozenset({"kafka"})):
        yield stack.kafka


@pytest.fixture
async def log(broker: str) -> AsyncIterator[EventLog]:
    made = KafkaEventLog(KafkaSettings(bootstrap=broker))
    yield made
    await made.close()


class Evaluators:
    """Processes of the service, one after the other on the same folder."""

    def __init__(self, broker: str, world: World, state: Path) -> None:
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("TRACKWAY_")} | {
            "TRACKWAY_KAFKA__BOOTSTRAP": broker,
            "TRACKWAY_STORE__URL": world.store_url,
            "TRACKWAY_STATE": str(state),
        }
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        argv = [sys.executable, "-m", "trackway_evaluator"]
        self._running = subprocess.Popen(argv, env=self._environment, stderr=subprocess.DEVNULL)

    def end(self, number: signal.Signals) -> int:
        assert self._running is not None
        self._running.send_signal(number)
        return self._running.wait(timeout=30)


@pytest.fixture
def evaluators(broker: str, world: World, tmp_path: Path) -> Iterator[Evaluators]:
    made = Evaluators(broker, world, tmp_path)
    made.start()
    yield made
    assert made.end(signal.SIGTERM) == 0


async def fact(log: EventLog, run_id: str, kind: type[F]) -> F:
    """The run's newest fact of a kind, once there is one."""
    found: list[F] = []
    async with asyncio.timeout(DEADLINE_S):
        async for batch in log.tail(EVALUATIONS, dict.fromkeys(range(FACT_PARTITIONS), 0)):
            commits = [decode_commit(record.value) for record in batch]
            facts = [one for c in commits if c.stream.endswith(run_id) for one in c.facts]
            found.extend(one for one in facts if isinstance(one, kind))
            if found and not batch:
                return found[-1]
    raise AssertionError("a tail never ends")


async def test_killed_evaluator_takes_its_process_over_again(
    log: EventLog, evaluators: Evaluators, world: World, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    run_id = await order_evaluation(log, world, world.spec(world.put_pack(), wait_for=str(pipe)))
    started = await fact(log, run_id, EvaluationStarted)
    # It waits for the other end of the pipe, so it has begun.
    writing = await asyncio.to_thread(os.open, pipe, os.O_WRONLY)
    evaluators.end(signal.SIGKILL)
    evaluators.start()
    os.close(writing)
    completed = await fact(log, run_id, EvaluationCompleted)
    assert completed.evaluation_attempt == started.evaluation_attempt == 1
    assert completed.verdict is Verdict.PASSED


async def test_evaluator_and_process_killed_together_cost_no_crash(
    log: EventLog, evaluators: Evaluators, world: World, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    run_id = await order_evaluation(log, world, world.spec(world.put_pack(), wait_for=str(pipe)))
    started = await fact(log, run_id, EvaluationStarted)
    evaluators.end(signal.SIGKILL)
    os.kill(started.pid, signal.SIGKILL)
    evaluators.start()
    failed = await fact(log, run_id, EvaluationFailed)
    await asyncio.to_thread(lambda: pipe.open("w").close())
    completed = await fact(log, run_id, EvaluationCompleted)
    assert (failed.failure, failed.move) == (EvaluationFailure.INTERRUPTED, NextMove.RETRY)
    assert completed.evaluation_attempt == 2
