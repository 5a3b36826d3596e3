"""Commands that are wrong, each in one way, and what their refusals say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml
from trackway_common.ids import uuid7
from trackway_common.testing.run_facts import RUN_ID

from tests.support.runs import spec

WRONG_FIELDS = {
    "model_family-misspelt": ({"modle_family": "x"}, ["modle_family", "model_family"]),
    "model_family-absent": ({"model_family": None}, ["model_family"]),
    "seed": ({"seed": "seven"}, ["seed"]),
    "world_size-text": ({"topology": {"world_size": "2"}}, ["topology.world_size"]),
    "world_size-500": ({"topology": {"world_size": 500, "strategy": "ddp"}}, ["topology.world_size", "500"]),
    "compute": ({"compute": "moon-1x"}, ["compute", "local-cpu-2x"]),
    "dataset": ({"datasets": ["nothing"]}, ["datasets", "nothing"]),
    "dataset-digest": ({"datasets": ["numbers@sha256:" + "0" * 64]}, ["datasets"]),
    "image": ({"runtime": {"kind": "image", "image": "x:latest"}}, ["runtime", "image"]),
    "lock": ({"runtime": {"kind": "lock"}}, ["runtime", "lock"]),
    "pack-unknown": ({"evaluation_pack": "no-such-pack"}, ["evaluation_pack", "no-such-pack"]),
    "entrypoint": ({"entrypoint": {"function": "no colon"}}, ["entrypoint.function"]),
    "retry": ({"retry": {"bad_luck": {"max": 3}}}, ["retry", "bad_luck"]),
    "hyperparameters": ({"hyperparameters": {"big": 2**60}}, ["hyperparameters"]),
    "three-at-once": ({"seed": "x", "compute": "moon", "model_family": None}, ["seed", "compute", "model_family"]),
}
"""Changes to a good spec, and what the refusal says."""
WRONG_PACKS = {
    "task-kind": ({"kind": "telepathy"}, {}, ["tasks[0].kind", "telepathy"]),
    "gate-task": ({}, {"task": "held-out"}, ["gates[0].task", "held-out", "heldout"]),
}
"""Changes to a good pack's task and to its gate, and what the refusal says."""
NO_SPECS = {"list": (b"- a\n- b\n", ["mapping"]), "empty": (b"", ["config"])}
"""YAML that is no spec: the service refuses it."""
UNREADABLE = {
    "yaml": (b"a: [", ["line 1"]),
    "utf8": (b"\xff\xfe\x00", ["UTF-8"]),
    "10MB": (b"x" * 10_000_000, ["1048576"]),
    "duplicate": (b"seed: 1\nseed: 2\n", ["twice"]),
    "nan": (b"lr: .nan\n", ["finite"]),
    "absent": (None, ["absent.yaml"]),
}
"""Files that the client itself refuses: nothing is sent."""
WRONG_SQL = {
    "insert": "insert into training_attempts values (1)",
    "file-table": "select * from file('/etc/passwd')",
    "file-function": "select file('/etc/passwd')",
    "drop": "drop table events",
    "two": "select 1; select 2",
    "typo": "selec 1",
}
NOWHERE = {
    "run": (["train", "show", RUN_ID], ["no run"]),
    "attempt": (["explain", f"{RUN_ID}/1"], ["no run"]),
    "dataset": (["dataset", "show", "nothing"], ["nothing"]),
}
"""Names of nothing."""


NAMES = [
    *(name for table in (WRONG_FIELDS, WRONG_PACKS, NO_SPECS, UNREADABLE) for name in table),
    *(f"sql-{name}" for name in WRONG_SQL),
    *(f"nowhere-{name}" for name in NOWHERE),
]


@dataclass(frozen=True)
class Case:
    """A command that is wrong, and what its refusal says."""

    command: list[str]
    says: list[str]
    request_id: str = ""
    """Of a submission that reaches the service."""


def every_case(folder: Path) -> dict[str, Case]:
    """All that is wrong, written down in a folder."""
    cases = {}
    for name, (changes, says) in WRONG_FIELDS.items():
        cases[name] = submission(spec(folder, name=f"{name}.yaml", **changes), says)
    for name, (task, gate, says) in WRONG_PACKS.items():
        (folder / f"pack-{name}.yaml").write_text(yaml.safe_dump(pack(f"pack-{name}", task, gate)))
        cases[name] = submission(spec(folder, name=f"{name}.yaml", evaluation_pack=f"pack-{name}"), says)
    for name, (body, says) in NO_SPECS.items():
        (folder / f"{name}.yaml").write_bytes(body)
        cases[name] = submission(folder / f"{name}.yaml", says)
    for name, (body, says) in UNREADABLE.items():
        path = folder / f"{name}.yaml"
        if body is not None:
            path.write_bytes(body)
        cases[name] = Case(["train", "submit", "--config", str(path)], says)
    cases |= {f"sql-{name}": Case(["sql", sql], []) for name, sql in WRONG_SQL.items()}
    return cases | {f"nowhere-{name}": Case(command, says) for name, (command, says) in NOWHERE.items()}


def submission(config: Path, says: list[str]) -> Case:
    request_id = uuid7()
    return Case(["train", "submit", "--config", str(config), "--request-id", request_id], says, request_id)


def pack(name: str, task: dict[str, str], gate: dict[str, str]) -> dict[str, object]:
    """A pack with one task and one gate."""
    good_task = {"id": "heldout", "version": "1", "kind": "classification", "data": "train:samples"}
    good_task |= {"dataset": "numbers", "split": "train"}
    good_gate = {"task": "heldout", "metric": "accuracy", "op": ">=", "threshold": 0.5}
    return {
        "apiVersion": "trackway/v1",
        "kind": "EvaluationPack",
        "name": name,
        "evaluator": {"adapter": "builtin"},
        "tasks": [good_task | task],
        "gates": [good_gate | gate],
    }
