"""A good run spec, what surrounds it, and the violations of a bad one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trackway_common.errors import CommandRejected
from trackway_common.evaluation_pack import parse_pack
from trackway_common.events import (
    CodeRef,
    DatasetRegistered,
    Price,
)
from trackway_common.yaml_core import load_yaml
from trackway_scheduler.domain.catalogue import Catalogue, ComputeClass
from trackway_scheduler.domain.spec import Submission, Surroundings, read_spec, resolve
from trackway_scheduler.domain.spec.reading import Draft

from tests.unit.scheduler.builders import DIGEST, NOW, pool

SPEC = """
apiVersion: trackway/v1
kind: TrainingRun
project: demo
model_family: reasoning
entrypoint: {function: "digits.train:main"}
compute: local-cpu-2x
datasets: ["digits:1.0"]
topology: {world_size: 2, checkpoint: {keep_last: 4, in_flight: skip}}
evaluation_pack: tiny
evaluation: {model: "digits.model:build"}
hyperparameters: {batch_size: 32, lr: 1e-3, steps: 100}
tunable: {micro_batch: batch_size}
retry: {process_crash: {max: 1, backoff_s: 0.5}, "*": {ceiling: 4}}
labels: {team: vision}
seed: 7
"""
PACK = b"""
apiVersion: trackway/v1
kind: EvaluationPack
name: tiny
evaluator: {adapter: builtin}
tasks:
  - {id: accuracy, version: "1", kind: classification, dataset: digits, split: test, data: "digits.data:samples"}
"""
OTHER = "sha256:" + "3" * 64
CLASSES = (
    ComputeClass(
        name="local-cpu-2x", pool="local", accelerator_kind="cpu", accelerators_per_rank=0, cpus_per_rank=1.0,
        memory_bytes_per_rank=0, max_ranks=2, preemptible=False,
        price=Price(amount=0.02, currency="USD", since="2026-01-01"),
    ),
    ComputeClass(
        name="gpu-1x", pool="gpu", accelerator_kind="h100", accelerators_per_rank=1, cpus_per_rank=4.0,
        memory_bytes_per_rank=0, max_ranks=8, preemptible=True, price=Price(),
    ),
)  # fmt: skip


def registered(manifest_digest: str) -> DatasetRegistered:
    return DatasetRegistered(name="digits", manifest_digest=manifest_digest, project="demo", registered_at=NOW)


def surroundings(**changes) -> Surroundings:
    known = Surroundings(
        datasets={"demo": {"digits": (registered(OTHER), registered(DIGEST))}},
        pools={"local": pool()},
        catalogue=Catalogue(classes=CLASSES),
        pack=parse_pack(PACK),
        pack_names=("tiny",),
        code_is_stored=True,
    )
    return replace(known, **changes)


def submission(**changes) -> Submission:
    return replace(Submission(caller="ada", drawn_seed=99, code=CodeRef(archive_digest=DIGEST)), **changes)


def read(text: str = SPEC, sent: Submission | None = None) -> Draft:
    return read_spec(load_yaml(text.encode(), name="config"), sent or submission())


def violations(text: str, known: Surroundings | None = None, sent: Submission | None = None) -> dict[str, str]:
    with pytest.raises(CommandRejected) as refused:
        resolve(read(text, sent), known or surroundings())
    return {violation.field: violation.description for violation in refused.value.violations}
