"""One more node of a Ray cluster of this machine: `python -m tests.faults.corpus.ray_node ADDRESS`.

`ray start` would look for the head at the host's address, where a head that listens to this machine alone is not.
Runs until standard input ends; its raylet and whatever runs on it end with it.
"""

from __future__ import annotations

import sys

from ray._private.node import Node
from ray._private.parameter import RayParams
from trackway.local.ray_head import OBJECT_STORE_BYTES


def main() -> None:
    [address] = sys.argv[1:]
    parameters = RayParams(
        gcs_address=address,
        node_ip_address="127.0.0.1",
        num_cpus=1,
        object_store_memory=OBJECT_STORE_BYTES,
        min_worker_port=0,
        max_worker_port=0,
    )
    node = Node(parameters, head=False, shutdown_at_exit=True, spawn_reaper=False)
    print(node.node_id, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
