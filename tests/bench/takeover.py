"""From SIGKILL of the active scheduler to the moment at which the standby serves."""

from __future__ import annotations

from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.bench.results import Results
from tests.integration.scheduler_harness import SchedulerProcess, wait_for
from tests.support.stack import running_stack


def measure(results: Results, folder: Path, count: int) -> None:
    """Kill the active one of two schedulers so often, on a broker of their own; a new standby follows each time."""
    folder.mkdir()
    for stack in running_stack(folder / "state", only=frozenset({"kafka"})):
        active = SchedulerProcess(stack.kafka, folder, "scheduler-0").start()
        started = [active]
        try:
            wait_for(active.serves)
            for number in range(1, count + 1):
                standby = SchedulerProcess(stack.kafka, folder, f"scheduler-{number}").start()
                started.append(standby)
                wait_for(lambda process=standby: stands_by(process))
                active.kill()
                results.takeover_s.append(wait_for(standby.serves))
                active = standby
        finally:
            for process in started:
                process.stop()


def stands_by(process: SchedulerProcess) -> bool:
    """Whether it has read the log and waits: its health service says NOT_SERVING."""
    with grpc.insecure_channel(process.endpoint) as channel:
        try:
            answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=1.0)
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.NOT_SERVING)
