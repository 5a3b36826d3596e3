"""Scheduler processes on a real broker; the test plays agents and everyone else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from trackway.local.ports import choose_ports
from trackway_common.clock import SystemClock
from trackway_common.codec import commit_headers, encode_commit
from trackway_common.commit import CommandContext, Commit, Term
from trackway_common.decider import Decider
from trackway_common.events import AgentHeartbeat, AttemptEnded, Fact, TerminationReason
from trackway_common.ids import attempt_stream, root_key, run_stream, uuid7
from trackway_common.kafka_log import KafkaEventLog
from trackway_common.partitioner import partition_of
from trackway_common.request_sender import RequestSender
from trackway_common.settings import KafkaSettings
from trackway_common.stream_owner import StreamOwner, Writer
from trackway_common.topics import ATTEMPTS, FACT_PARTITIONS, RUNS

AGENT = AgentHeartbeat(
    agent_id="agent-1", endpoint="127.0.0.1:9", pool="local", cluster_id="c-1", cpus=64.0, memory_bytes=512 << 30,
    environment_digest="sha256:" + "e" * 64, python_version="3.11.7",
)  # fmt: skip
SPEC = """
apiVersion: trackway/v1
kind: TrainingRun
project: tests
model_family: reasoning
entrypoint: {function: "m.train:main"}
compute: local-cpu-2x
topology: {world_size: 2}
retry: {process_crash: {max: 2, backoff_s: 0.2}}
"""
START_S = 60.0


@dataclass
class SchedulerProcess:
    """``python -m trackway_scheduler`` on the broker, under a fixed port."""

    bootstrap: str
    folder: Path
    name: str
    port: int = field(default_factory=lambda: choose_ports(("scheduler",), {})["scheduler"])
    process: subprocess.Popen | None = None

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> SchedulerProcess:
        environment = os.environ | {
            "TRACKWAY_KAFKA__BOOTSTRAP": self.bootstrap,
            "TRACKWAY_STORE__URL": (self.folder / "objects").as_uri(),
            "TRACKWAY_RPC__LISTEN": self.endpoint,
            "TRACKWAY_INSTANCE": self.name,
            "TRACKWAY_COMPUTE_CATALOGUE": str(files("trackway.local") / "catalogue.yaml"),
        }
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "trackway_scheduler"], env=environment, stderr=log)
        return self

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self.process is not None
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            assert self.process.wait(timeout=15) == 0

    def serves(self) -> bool:
        """Whether its health service says SERVING."""
        with grpc.insecure_channel(self.endpoint) as channel:
            try:
                answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=1.0)
            except grpc.RpcError:
                return False
        return answer.status == health_pb2.HealthCheckResponse.SERVING


def wait_for(holds: Callable[[], object], timeout_s: float = START_S) -> float:
    """Poll until something of another process holds; returns the seconds it took."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < timeout_s, "waited too long"
        time.sleep(0.02)
    return time.monotonic() - began


class Hands:
    """What agents and others append, each call on a connection of its own."""

    def __init__(self, bootstrap: str) -> None:
        self._settings = KafkaSettings(bootstrap=bootstrap)

    def beat(self, agent: AgentHeartbeat = AGENT) -> None:
        """One heartbeat of the agent."""

        async def send(log: KafkaEventLog) -> None:
            await RequestSender(log, "test", SystemClock(), uuid7).send(agent, key=agent.agent_id)

        self._run(send)

    def end_attempt(self, run_id: str, attempt: int, reason: TerminationReason) -> None:
        now = SystemClock().now()
        self.append_attempt_fact(
            run_id, attempt, AttemptEnded(run_id=run_id, attempt=attempt, reason=reason, started_at=now, ended_at=now)
        )

    def append_attempt_fact(self, run_id: str, attempt: int, fact: Fact) -> None:
        """Claim the attempt's stream and append to it, as its agent would."""
        stream = attempt_stream(run_id, attempt)

        async def write(log: KafkaEventLog) -> None:
            decider = Decider(initial=lambda _: None, decide=lambda _, facts: facts, evolve=lambda state, _: state)
            owner = StreamOwner(
                event_log=log, topic=ATTEMPTS, decider=decider, writer=Writer(writer_id=uuid7(), endpoint=""),
                clock=SystemClock(), ids=uuid7,
            )  # fmt: skip
            tail = asyncio.create_task(owner.run())
            await owner.claim(stream, attempt)
            await owner.execute(stream, (fact,), CommandContext(command_id=uuid7(), actor="test"))
            tail.cancel()

        self._run(write)

    def poison(self, topic: str, key: str = "x") -> None:
        """A record that is no message of ours."""
        self._run(lambda log: log.append(topic, 0, key.encode(), b"\xff\xff no protobuf", ()))

    def forge(self, run_id: str, fact: Fact, term: Term) -> None:
        """A commit on a run's stream by somebody who owns nothing."""
        stream = run_stream(run_id)
        commit = Commit(
            commit_id=uuid7(), stream=stream, first_seq=3, term=term, writer_id="zombie", command_id="",
            causation_id="", correlation_id="", tenant="", actor="zombie", occurred_at=SystemClock().now(),
            traceparent="", facts=(fact,),
        )  # fmt: skip
        key = root_key(stream)
        partition = partition_of(key, FACT_PARTITIONS)
        self._run(lambda log: log.append(RUNS, partition, key, encode_commit(commit), commit_headers(commit)))

    def _run(self, action) -> None:
        async def within() -> None:
            log = KafkaEventLog(self._settings)
            try:
                await action(log)
            finally:
                await log.close()

        asyncio.run(within())
