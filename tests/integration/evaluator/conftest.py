"""A small world to evaluate in: a store with a dataset, code, packs, and a checkpoint that the SDK wrote."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from trackway_common.canonical import canonical_json
from trackway_common.checkpoint.commit_log import CommitLog
from trackway_common.checkpoint.layout import parse_path
from trackway_common.evaluation_pack import pack_bytes, parse_pack
from trackway_common.events import (
    CheckpointPolicy,
    CheckpointRef,
    CodeRef,
    ComputeRef,
    DatasetRef,
    Entrypoint,
    EntrypointKind,
    EvaluationPackRef,
    Price,
    RunSpec,
    RuntimeRef,
    Topology,
    Trigger,
)
from trackway_common.object_store import BlobStore, LocalObjectStore

MODEL = '''
import torch

def build(config):
    if config.get("raise"):
        raise {"memory": MemoryError, "bug": ZeroDivisionError}[config["raise"]]("as asked")
    if config.get("wait_for"):
        open(config["wait_for"]).close()  # A pipe: open returns once somebody opens the other end.
    return torch.nn.Linear(2, config.get("classes", 2), bias=False)

class Counter(torch.nn.Module):
    """Next byte = this byte + 1, with most of the weight."""
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(256, 256)
    def forward(self, tokens_BT):
        return self.table(tokens_BT)

def build_counter(config):
    return Counter()
'''
DATA = """
import csv, io
import torch

def samples(files, split, limit):
    for file in files:
        for number, row in enumerate(csv.DictReader(io.StringIO(file.read_bytes().decode()))):
            yield {
                "id": f"{file.path}:{number}",
                "input": torch.tensor([float(row["a"]), float(row["b"])]),
                "target": int(row["label"]),
                "label": row["label"],
            }

def nameless(files, split, limit):
    yield {"input": 1}

def letters(files, split, limit):
    for start in range(97, 97 + 20):
        tokens = list(range(start, start + 4))
        yield {"id": chr(start), "input": torch.tensor(tokens[:-1]), "target": torch.tensor(tokens[1:]), "bytes": 3}

def prompts(files, split, limit):
    for start in range(97, 97 + 20):
        yield {"id": chr(start), "prompt": [start], "target": [start + 1, start + 2]}

def decode(tokens):
    return bytes(tokens).decode("latin-1")
"""
TRAIN = """
import sys
import torch
import trackway.training as tw
from toy.model import Counter

with tw.session(config={"of": sys.argv[1]}) as s:
    if sys.argv[1] == "linear":
        model = torch.nn.Linear(2, 2, bias=False)
        model.weight.data = torch.tensor([[-1.0, 1.0], [1.0, -1.0]])
    else:
        model = Counter()
        model.table.weight.data = 10 * torch.eye(256).roll(1, dims=1)
    s.prepare(model=model, optimizer=torch.optim.Adam(model.parameters()))
    s.restore()
    s.report(7, loss=0.5)
    s.checkpoint(7)
"""
COMMAND = """
import json, os, signal, sys
request = json.load(open(sys.argv[1]))
if "kill" in request["hyperparameters"]:
    os.kill(os.getppid(), getattr(signal, request["hyperparameters"]["kill"]))
    signal.pause()
[task] = request["tasks"]
assert request["checkpoint"]["step"] == 7
with open(task["output"], "w") as out:
    for number in range(4):
        line = {"id": str(number), "metrics": {"score": number / 4}, "failed": number == 0, "output": f"said {number}"}
        out.write(json.dumps(line) + "\\n")
    out.write(json.dumps({"id": "lost", "error": "the judge was away"}) + "\\n")
"""
PACK = """
apiVersion: trackway/v1
kind: EvaluationPack
name: toy
evaluator: {adapter: builtin, batch_size: 8}
tasks:
  - {id: accuracy, version: "1", kind: classification, dataset: points, split: test, data: "toy.data:samples",
     slices: [label]}
gates: [{task: accuracy, metric: accuracy, op: ">=", threshold: 0.8}]
capture: {failures: 2}
"""


COMMAND_PACK = f"""
apiVersion: trackway/v1
kind: EvaluationPack
name: any-language
evaluator: {{adapter: command, command: ["{sys.executable}", score.py]}}
tasks:
  - {{id: said, version: "1", kind: command, dataset: points, split: test,
     metrics: [{{name: score, higher_is_better: true, primary: true}}]}}
"""


@dataclass
class World:
    """Where things are, and what they are called."""

    folder: Path
    blobs: BlobStore
    dataset_digest: str
    code_digest: str
    checkpoints: dict[str, CheckpointRef] = field(default_factory=dict)

    @property
    def store_url(self) -> str:
        return self.folder.as_uri()

    def put_pack(self, text: str = PACK) -> EvaluationPackRef:
        pack = parse_pack(text.encode())
        return EvaluationPackRef(name=pack.name, requested=pack.name, digest=self.blobs.put(pack_bytes(pack)))

    def spec(self, pack: EvaluationPackRef, model: str = "toy.model:build", **hyperparameters: object) -> RunSpec:
        return RunSpec(
            project="demo",
            model_family="toy",
            trigger=Trigger(kind="person"),
            entrypoint=Entrypoint(kind=EntrypointKind.FUNCTION, argv=("toy.train:main",)),
            code=CodeRef(requested=".", archive_digest=self.code_digest),
            runtime=RuntimeRef(kind="pool"),
            hyperparameters_json=json.dumps(hyperparameters),
            datasets=(DatasetRef(name="points", requested="points", manifest_digest=self.dataset_digest, weight=1.0),),
            compute=ComputeRef(price=Price()),
            topology=Topology(world_size=1, checkpoint=CheckpointPolicy(keep_last=2)),
            evaluation_pack=pack,
            evaluation_model=model,
        )


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("evaluator-world")
    code = folder / "code"
    (code / "toy").mkdir(parents=True)
    for name, text in (("__init__", ""), ("model", MODEL), ("data", DATA)):
        (code / f"toy/{name}.py").write_text(text)
    (code / "train.py").write_text(TRAIN)
    (code / "score.py").write_text(COMMAND)
    store = folder / "store"
    blobs = BlobStore(LocalObjectStore(store))
    made = World(
        folder=store, blobs=blobs, dataset_digest=blobs.put(_dataset(folder)), code_digest=blobs.put(_archive(code))
    )
    trainings = {kind: _train(code, folder / kind, kind) for kind in ("linear", "counter")}
    for kind, training in trainings.items():
        assert training.wait() == 0
        made.checkpoints[kind] = _committed(folder / kind, store)
    return made


def _dataset(folder: Path) -> bytes:
    """50 points; class 1 iff a > b, but for every tenth, which is labelled wrongly."""
    rows = [(i % 7, (i * 3) % 5) for i in range(50)]
    labels = [int(a + 0.25 > b) ^ (i % 10 == 9) for i, (a, b) in enumerate(rows)]
    lines = "\n".join(f"{a}.25,{b},{label}" for (a, b), label in zip(rows, labels, strict=True))
    content = f"a,b,label\n{lines}\n".encode()
    (folder / "data").mkdir()
    (folder / "data/points.csv").write_bytes(content)
    file = {
        "path": "points.csv",
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "split": "test",
    }
    manifest = {"name": "points", "root": str(folder / "data"), "files": [file], "splits": {"test": "sha256:0"}}
    return canonical_json(manifest)


def _archive(code: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted(code.rglob("*.py")):
            tar.add(path, arcname=str(path.relative_to(code)))
    return buffer.getvalue()


def _train(code: Path, local: Path, kind: str) -> subprocess.Popen[bytes]:
    """Train with the SDK by hand: its local keeper commits through the same protocol."""
    environment = os.environ | {"TRACKWAY_LOCAL_DIR": str(local), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(code)}
    argv = [sys.executable, "train.py", kind]
    return subprocess.Popen(argv, cwd=code, env=environment, stdout=subprocess.DEVNULL)


def _committed(local: Path, store: Path) -> CheckpointRef:
    """Move the one run of a local folder into the store and return its only checkpoint."""
    [run] = (local / "checkpoints").iterdir()
    (store / "checkpoints").mkdir(exist_ok=True)
    run.rename(store / "checkpoints" / run.name)
    log = CommitLog(LocalObjectStore(store), run.name, writer="test", now_ms=lambda: 0)
    [found] = log.refresh().restorable
    name = parse_path(found.commit.path)
    return CheckpointRef(
        run_id=run.name,
        step=name.step,
        epoch=name.epoch,
        nonce=name.nonce,
        manifest_digest=found.commit.manifest_digest,
        slot=found.slot,
    )
