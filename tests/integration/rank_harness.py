"""Rank actors as plain objects, without Ray: what tests of the worker share."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from trackway_common.canonical import Json, canonical_json, digest
from trackway_common.events import Entrypoint, EntrypointKind
from trackway_common.object_store import BlobStore, open_store
from trackway_trainer_agent.worker.rank_actor import RankActor
from trackway_trainer_agent.worker.rank_spec import RankSpec
from trackway_trainer_agent.worker.records import RankPhase, Record, TrainerExited

R = TypeVar("R")
RUN = "0199aaaa-0000-7000-8000-000000000001"
LIMIT_S = 60.0


def script_spec(
    store: Path, files: Mapping[str, str], *argv: str, hyperparameters: Mapping[str, Json] = MappingProxyType({})
) -> RankSpec:
    """A spec of one rank that runs a script of an archive made of these files."""
    return RankSpec(
        run_id=RUN,
        attempt=1,
        epoch=1,
        attempt_token="token-1",
        rank=0,
        world_size=1,
        local_rank=0,
        local_world_size=1,
        group_rank=0,
        group_world_size=1,
        master_addr="127.0.0.1",
        master_port=0,
        entrypoint=Entrypoint(kind=EntrypointKind.SCRIPT, argv=argv or ("train.py",)),
        store_url=store.as_uri(),
        code_archive_digest=BlobStore(open_store(store.as_uri())).put(code_archive(files)),
        hyperparameters_json=canonical_json(hyperparameters).decode(),
        config_digest=digest(hyperparameters),
        seed=7,
    )


def code_archive(files: Mapping[str, str]) -> bytes:
    """A tar of these files."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, text in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return archive.getvalue()


def records(actor: RankActor, after: int = 0) -> list[Record]:
    """Everything that can be drained now."""
    found: list[Record] = []
    while True:
        batch = actor.drain(after)
        found += [numbered.record for numbered in batch.records]
        after = batch.cursor
        if not batch.more:
            return found


def of(kind: type[R], found: list[Record]) -> list[R]:
    """Those of one kind."""
    return [record for record in found if isinstance(record, kind)]


def run_to_end(actor: RankActor, spec: RankSpec) -> list[Record]:
    """Start it, wait for its end, drain it."""
    actor.start(spec)
    return wait_for_end(actor)


def wait_for_end(actor: RankActor) -> list[Record]:
    wait_until(lambda: actor.ping().phase is RankPhase.ENDED)
    return records(actor)


def ended(found: list[Record]) -> TrainerExited:
    """The one exit record."""
    (exited,) = of(TrainerExited, found)
    return exited


def wait_until(condition: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    """Wait for something that only polling can see."""
    deadline_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen in time"
        time.sleep(0.01)


def ranks_of(spec: RankSpec, world_size: int, port: int) -> list[RankSpec]:
    """The spec for every rank of one node."""
    return [
        replace(spec, rank=rank, local_rank=rank, world_size=world_size, local_world_size=world_size, master_port=port)
        for rank in range(world_size)
    ]
