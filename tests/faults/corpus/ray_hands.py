"""Does something to the stack's Ray cluster as somebody else would; a process of its own, since Ray is one a process.

python -m tests.faults.corpus.ray_hands ADDRESS hold CPUS     keep that many CPUs until standard input ends
python -m tests.faults.corpus.ray_hands ADDRESS kill ACTOR    ray.kill
"""

from __future__ import annotations

import sys

import ray
from ray.util.placement_group import placement_group
from trackway_trainer_agent.adapters import ray_cluster

NAMESPACE = "trackway"
HEAD = "node:__internal_head__"
"""Resource that only the head has."""
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
        case "find":
            workers = [node for node in ray.nodes() if node["Alive"] and HEAD not in node["Resources"]]
            [worker] = workers
            print(worker["NodeID"], flush=True)


if __name__ == "__main__":
    main()
