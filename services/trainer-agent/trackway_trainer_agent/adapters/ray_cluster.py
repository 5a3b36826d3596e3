"""Questions to a Ray cluster that block; each in a thread of its own. Lives in the driver process."""

from __future__ import annotations

import ipaddress
import re
import socket
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import ray
from ray._private.state import state as ray_state
from ray._private.worker import global_worker
from ray.exceptions import RayError
from ray.util.placement_group import PlacementGroup, placement_group, placement_group_table, remove_placement_group
from trackway_common.errors import Unavailable

from trackway_trainer_agent.adapters.ray_exclusion import LivingNode, node_selector
from trackway_trainer_agent.gangs import ClusterView, GangName, GangRequest, NotGranted

HEAD_LIMIT_S = 4
REMOVED_LIMIT_S = 10.0
"""For the cluster to forget a killed actor's name."""
_ACTOR = re.compile(r"trackway-(.+)-(\d+)-r(\d+)")
_GROUP = re.compile(r"trackway-(.+)-(\d+)")


def join(address: str, namespace: str) -> str:
    """Join the cluster as a driver, once its head listens; returns the head's host.

    ``RAY_AUTH_MODE`` and ``RAY_AUTH_TOKEN_PATH`` must have been in the environment before Ray was imported.
    """
    host, _, port = address.rpartition(":")
    _await_head(host, int(port))
    # With a loopback head Ray rewrites the address to the host's, where nobody listens.
    loopback = ipaddress.ip_address(socket.gethostbyname(host)).is_loopback
    node = {"_node_ip_address": host} if loopback else {}
    ray.init(address=address, namespace=namespace, log_to_driver=False, logging_level="ERROR", **node)
    return host


def view() -> ClusterView:
    """The cluster as its head knows it; raises ``Unavailable``."""
    try:
        known = global_worker.gcs_client.get_all_node_info(timeout=HEAD_LIMIT_S)
        cluster_id = global_worker.gcs_client.cluster_id.hex()
        # Ray drains a node that is in use for one reason only: it is about to be preempted.
        leaving = global_worker.gcs_client.get_draining_nodes(timeout=HEAD_LIMIT_S)
    except (RayError, RuntimeError, TimeoutError) as error:
        raise Unavailable(f"the cluster's head does not answer: {error}") from error
    alive = {node_id.hex(): node for node_id, node in known.items() if node.state == 0}
    totals: defaultdict[str, float] = defaultdict(float)
    for node in alive.values():
        for name, amount in node.resources_total.items():
            totals[name] += amount
    return ClusterView(
        cluster_id=cluster_id,
        cpus=totals["CPU"],
        accelerators=int(totals["GPU"]),
        memory_bytes=int(totals["memory"]),
        nodes=tuple(sorted(alive)),
        largest_node_memory_bytes=int(
            max((node.resources_total.get("memory", 0.0) for node in alive.values()), default=0.0)
        ),
        leaving=tuple(sorted(leaving)),
    )


def existing() -> Mapping[GangName, frozenset[int]]:
    """Gangs with a placement group or living actors, and the ranks of the latter."""
    ranks: defaultdict[GangName, set[int]] = defaultdict(set)
    for group in _groups():
        if match := _GROUP.fullmatch(group):
            ranks[GangName(run_id=match[1], attempt=int(match[2]))] |= set()
    for actor in ray.util.list_named_actors():
        if match := _ACTOR.fullmatch(actor):
            ranks[GangName(run_id=match[1], attempt=int(match[2]))].add(int(match[3]))
    return {gang: frozenset(living) for gang, living in ranks.items()}


def place(request: GangRequest) -> PlacementGroup:
    """Reserve every bundle of the gang.

    Raises:
        NotGranted: not granted in time.
    """
    bundles = [_resources(bundle.cpus, bundle.accelerators, bundle.memory_bytes) for bundle in request.bundles]
    selector = node_selector(request.excluded_nodes, bundles, _living_nodes() if request.excluded_nodes else ())
    labels = {"bundle_label_selector": [selector] * len(bundles)} if selector else {}
    group = placement_group(bundles, strategy="PACK", name=str(request.name), lifetime="detached", **labels)
    if not group.wait(request.wait_s):
        free = {name: amount for name, amount in ray.available_resources().items() if name in {"CPU", "GPU", "memory"}}
        raise NotGranted(f"{bundles} were not granted within {request.wait_s:g} s; free are {free}")
    return group


def remove_group(gang: GangName) -> None:
    """Give the gang's resources back, and wait until nothing has its name."""
    if str(gang) in _groups():
        try:
            remove_placement_group(ray.util.get_placement_group(str(gang)))
        except ValueError:
            pass  # Removed by another call meanwhile.
    deadline = time.monotonic() + REMOVED_LIMIT_S
    while gang in existing() and time.monotonic() < deadline:
        time.sleep(0.02)


def find_actor(gang: GangName, rank: int) -> Any | None:
    """The rank's actor; None when no living one has its name."""
    try:
        return ray.get_actor(gang.actor(rank))
    except ValueError:
        return None


def death_record(gang: GangName, rank: int) -> str:
    """What the head recorded about the death of the rank's actor; empty when it knows of none."""
    name = gang.actor(rank)
    records = [record for record in ray_state.actor_table(None).values() if record["Name"] == name]
    newest = max(records, key=lambda record: record["StartTime"], default=None)
    return "" if newest is None else str(newest.get("DeathCause") or "")


def _living_nodes() -> tuple[LivingNode, ...]:
    try:
        known = global_worker.gcs_client.get_all_node_info(timeout=HEAD_LIMIT_S)
    except (RayError, RuntimeError, TimeoutError) as error:
        raise NotGranted(f"the cluster's head does not say which nodes live: {error}") from error
    return tuple(
        LivingNode(node_id=node_id.hex(), host=node.node_manager_hostname, resources=dict(node.resources_total))
        for node_id, node in known.items()
        if node.state == 0
    )


def _groups() -> set[str]:
    return {group["name"] for group in placement_group_table().values() if group["state"] != "REMOVED"}


def _resources(cpus: float, accelerators: int, memory_bytes: int) -> dict[str, float]:
    wanted = {"CPU": cpus, "GPU": accelerators, "memory": memory_bytes}
    return {name: amount for name, amount in wanted.items() if amount > 0}


def _await_head(host: str, port: int) -> None:
    while True:
        try:
            socket.create_connection((host, port), timeout=2.0).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
