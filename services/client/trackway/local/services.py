"""The five services, as the stack starts them."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from trackway.local import clickhouse, kafka, ray_head
from trackway.local.probes import grpc_serves
from trackway.local.spec import BESIDE_TRAINING, ChildSpec, Plan

DEPENDENCIES: Mapping[str, tuple[str, ...]] = {
    "scheduler": (kafka.NAME,),
    "checkpointer": (kafka.NAME,),
    "evaluator": (kafka.NAME,),
    "observer": (kafka.NAME, clickhouse.NAME),
    "trainer-agent": (kafka.NAME, ray_head.NAME),
}
PORTS = tuple(DEPENDENCIES)


def service_specs(plan: Plan) -> tuple[ChildSpec, ...]:
    """Return how to run each service."""
    return tuple(_spec(plan, name, needs) for name, needs in DEPENDENCIES.items())


def _spec(plan: Plan, name: str, needs: tuple[str, ...]) -> ChildSpec:
    address = plan.address(name)
    return ChildSpec(
        name=name,
        argv=(sys.executable, "-m", f"trackway_{name.replace('-', '_')}"),
        endpoint=address,
        niceness=BESIDE_TRAINING,
        answers=grpc_serves(address),
        env=_env(plan, name) | ray_head.ray_env(plan.folder),
        depends_on=needs,
    )


def _env(plan: Plan, name: str) -> dict[str, str]:
    address = plan.address(name)
    return {
        "TRACKWAY_STATE": str(plan.folder.root),
        "TRACKWAY_KAFKA__BOOTSTRAP": plan.address(kafka.NAME),
        "TRACKWAY_CLICKHOUSE__URL": f"http://{plan.address(clickhouse.NAME)}",
        "TRACKWAY_STORE__URL": plan.folder.objects.as_uri(),
        "TRACKWAY_RPC__LISTEN": address,
        "TRACKWAY_RPC__ADVERTISE": address,
        "TRACKWAY_RAY__ADDRESS": plan.address(ray_head.NAME),
        "TRACKWAY_COMPUTE_CATALOGUE": str(plan.folder.catalogue),
        "TRACKWAY_TELEMETRY__TRACE_FILE": str(plan.folder.traces / f"{name}.jsonl"),
    }
