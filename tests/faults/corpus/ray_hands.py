"""Does something to the stack's Ray cluster as somebody else would; a process of its own, since Ray is one a process.

python -m tests.faults.corpus.ray_hands ADDRESS hold CPUS     keep that many CPUs until standard input ends
python -m tests.faults.corpus.ray_hands ADDRESS kill ACTOR    ray.kill
"""

from __future__ import annotations

import sys
import time

import ray
from ray._private.worker import global_worker
from ray.util.placement_group import placement_group
from trackway_trainer_agent.adapters import ray_cluster

NAMESPACE = "trackway"
PREEMPTION = 2
"""DrainNodeReason of Ray's autoscaler.proto."""
NOTICE = "spot capacity was reclaimed"
GRANTED_S = 30.0


def main() -> None:
    address, order, argument = sys.argv[1:]
    ray_cluster.join(address, NAMESPACE)
    match order:
        case "hold":
            group = placement_group([{"CPU": 1.0}] * int(argument), strategy="PACK")
            assert group.wait(GRANTED_S), f"{argument} CPUs were not granted"
            print("held", flush=True)
            sys.stdin.read()
        case "kill":
            ray.kill(ray.get_actor(argument))
            print("killed", flush=True)
        case "drain":
            node_id, _, seconds = argument.partition(":")
            deadline_ms = int((time.time() + int(seconds)) * 1000)
            accepted, why = global_worker.gcs_client.drain_node(node_id, PREEMPTION, NOTICE, deadline_ms)
            assert accepted, why
            print("told", flush=True)


if __name__ == "__main__":
    main()
