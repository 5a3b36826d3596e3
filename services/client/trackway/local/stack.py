"""The whole stack as specs: what there is, on which ports, with what environment."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from trackway.local import clickhouse, kafka, ray_head, services
from trackway.local.ports import choose_ports
from trackway.local.processes import STACK_VARIABLE
from trackway.local.spec import ChildSpec, Plan, StackOptions, selected
from trackway.local.state import StackRecord, StateFolder

PORT_NAMES = (*kafka.PORTS, *ray_head.PORTS, *clickhouse.PORTS, *services.PORTS)
CHILD_NAMES = (kafka.NAME, ray_head.NAME, clickhouse.NAME, *services.PORTS)
KEPT_PREFIX = "TRACKWAY_TELEMETRY__"


def make_plan(folder: StateFolder, earlier: StackRecord | None, options: StackOptions) -> Plan:
    """Choose the stack's id and ports: those it had before, where that is possible."""
    return Plan(
        folder=folder,
        stack_id=earlier.stack_id if earlier else str(uuid.uuid4()),
        ports=choose_ports(PORT_NAMES, earlier.ports if earlier else {}),
        options=options,
    )


def stack_specs(plan: Plan, libs: Path) -> tuple[ChildSpec, ...]:
    """Return the children that the options ask for."""
    parts = (kafka.kafka_spec(plan, libs), ray_head.ray_spec(plan), clickhouse.clickhouse_spec(plan))
    return selected((*parts, *services.service_specs(plan)), plan.options.only)


def shared_env(plan: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what every child inherits.

    The shell's own ``TRACKWAY_…`` settings may speak of another cluster, so only those of telemetry pass.
    """
    inherited = {
        name: value
        for name, value in ray_head.without_ray_address(environ).items()
        if not name.startswith("TRACKWAY_") or name.startswith(KEPT_PREFIX)
    }
    return inherited | {STACK_VARIABLE: plan.stack_id, "OMP_NUM_THREADS": "1"}


def provide_catalogue(folder: StateFolder) -> None:
    """Copy the default compute catalogue unless the user has one; it is theirs to edit."""
    if not folder.catalogue.exists():
        shutil.copyfile(Path(str(files("trackway.local"))) / "catalogue.yaml", folder.catalogue)
