"""A Ray driver of the re-attachment test, run as a process: ``python -m … begin|finish FOLDER ADDRESS``.

``begin`` makes two detached rank actors, starts training and dies without a word; ``finish`` finds them and drains.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from pathlib import Path

import ray
from trackway_trainer_agent.worker.rank_actor import RankActor
from trackway_trainer_agent.worker.records import RankPhase

from tests.integration.rank_harness import ranks_of, script_spec
from tests.integration.training_program import PROGRAM

RANKS = 2


def begin(folder: Path) -> None:
    actor_class = ray.remote(RankActor)
    actors = [
        actor_class.options(name=f"rank-{rank}", lifetime="detached", num_cpus=1).remote(
            scratch=str(folder / "scratch")
        )
        for rank in range(RANKS)
    ]
    described = ray.get([actor.describe.remote() for actor in actors])
    assert all(place.node != place.host for place in described), "a Ray actor tells Ray's node id"
    program = PROGRAM.replace("indices = next(cursor)", "time.sleep(0.2); indices = next(cursor)")
    spec = script_spec(folder / "objects", {"train.py": program}, hyperparameters={"steps": 15, "every": 5})
    specs = ranks_of(spec, RANKS, described[0].free_port)
    ray.get([actor.start.remote(rank_spec) for actor, rank_spec in zip(actors, specs, strict=True)])
    while ray.get(actors[0].ping.remote()).last_step < 2:
        time.sleep(0.05)
    os._exit(0)


def finish(folder: Path) -> None:
    actors = [ray.get_actor(f"rank-{rank}") for rank in range(RANKS)]
    seen_running = [ray.get(actor.ping.remote()).phase for actor in actors]
    found = []
    for actor in actors:
        while ray.get(actor.ping.remote()).phase is not RankPhase.ENDED:
            time.sleep(0.05)
        found.append([numbered.record for numbered in ray.get(actor.drain.remote(0)).records])
    (folder / "found").write_bytes(pickle.dumps((seen_running, found)))
    ray.get([actor.close.remote() for actor in actors])
    for actor in actors:
        ray.kill(actor)


if __name__ == "__main__":
    ray.init(
        address=sys.argv[3],
        _node_ip_address="127.0.0.1",
        namespace="trackway",
        log_to_driver=False,
        logging_level="warning",
    )
    {"begin": begin, "finish": finish}[sys.argv[1]](Path(sys.argv[2]))
