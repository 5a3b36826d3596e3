"""The stack's Ray head: a node of one machine, reachable from this machine only."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from trackway.local.probes import log_says, tcp_answers
from trackway.local.spec import ChildSpec, Plan
from trackway.local.state import StateFolder

NAME = "ray"
CLIENT_SERVER = "ray-client-server"
DASHBOARD_AGENT = "ray-dashboard-agent"
PORTS = (NAME, CLIENT_SERVER, DASHBOARD_AGENT)
OBJECT_STORE_BYTES = 256 << 20
"""Trackway moves nothing through it, and by default Ray would claim 30 % of the machine's memory."""
STARTED = "Ray runtime started"
SHORT_TEMP = Path("/tmp")  # noqa: S108 - Ray's Unix sockets lie below it, and their paths may have 107 bytes


def ray_spec(plan: Plan) -> ChildSpec:
    """Return how to run the head; it ends with everything it started."""
    address = plan.address(NAME)
    folder = temp_folder(plan.stack_id)

    async def prepare() -> None:
        create_token(plan.folder.ray_token)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)

    return ChildSpec(
        name=NAME,
        argv=(
            *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
            *("--num-cpus", str(plan.options.cpus)),
            *("--node-ip-address", "127.0.0.1", "--port", str(plan.ports[NAME])),
            *("--ray-client-server-port", str(plan.ports[CLIENT_SERVER])),
            *("--dashboard-agent-listen-port", str(plan.ports[DASHBOARD_AGENT])),
            # The default range of worker ports collides with the two above.
            *("--min-worker-port", "0", "--max-worker-port", "0"),
            *("--object-store-memory", str(OBJECT_STORE_BYTES)),
            *("--include-dashboard=false", "--disable-usage-stats", "--temp-dir", str(folder)),
        ),
        endpoint=address,
        answers=log_says(STARTED, tcp_answers(address)),
        env=ray_env(plan.folder) | {"PYTHONUNBUFFERED": "1"},
        before_start=prepare,
    )


def ray_env(folder: StateFolder) -> dict[str, str]:
    """Return what the head, and everything that connects to it, needs in its environment before it imports ray."""
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(folder.ray_token),
        # Without it Ray rewrites 127.0.0.1 to the host's address: the head would listen to the network, and a driver
        # would dial where nobody listens.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        # Ray's monitor would kill the actor that supervises a rank; Trackway bounds the trainer itself.
        "RAY_memory_monitor_refresh_ms": "0",
        # SIGTERM would wait 30 s for actors to move to another node; there is none.
        "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
        # By default Ray runs its workers, and so the trainers, at niceness 15: below everything else on this machine.
        "RAY_worker_niceness": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
    }


def without_ray_address(environ: Mapping[str, str]) -> dict[str, str]:
    """Drop a cluster address that the user's shell may hold for other work."""
    return {name: value for name, value in environ.items() if name != "RAY_ADDRESS"}


def temp_folder(stack_id: str) -> Path:
    """Return where Ray keeps its sockets and logs."""
    return SHORT_TEMP / f"tw-{stack_id.replace('-', '')[-8:]}"


def create_token(path: Path) -> None:
    """Write a new token, readable by this user only, unless there is one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32))
