"""What goes wrong inside a session reaches the actor with its reason, its step and its place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from trackway_common.canonical import canonical_json
from trackway_common.events import Entrypoint, EntrypointKind, InFlightPolicy
from trackway_common.object_store import BlobStore, open_store
from trackway_trainer_agent.worker.rank_actor import RankActor
from trackway_trainer_agent.worker.rank_spec import DatasetInput
from trackway_trainer_agent.worker.records import CheckpointCaptured, CheckpointPersisted, LogLine, StepMetrics

from tests.integration.rank_harness import ended, of, run_to_end, script_spec

READS_DATA = """
import trackway.training as tw
with tw.session() as s:
    print(s.dataset("words").splits, s.config["lr"], flush=True)
    s.report(3, loss=0.5)
    for file in s.dataset("words").files("train"):
        print(file.path, file.read_text(), flush=True)
"""

FAILS = """
import torch, trackway.training as tw
def main():
    with tw.session() as s:
        s.report(7, accuracy=float("nan"))
        try:
            torch.nn.Linear(2, 3)(torch.zeros(1, 5))
        except RuntimeError as error:
            raise ValueError("the model does not fit the data") from error
"""

SAVES_OFTEN = """
import torch, trackway.training as tw
with tw.session() as s:
    model = torch.nn.Linear(1024, 1024)
    s.prepare(model=model)
    for step in range(1, 21):
        s.report(step, loss=1.0)
        print(s.checkpoint(step).value, flush=True)
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "objects"


@pytest.fixture
def actor(tmp_path: Path) -> Iterator[RankActor]:
    made = RankActor(scratch=str(tmp_path / "scratch"))
    yield made
    made.close()


def printed(found: list[object]) -> list[str]:
    return [line.text for line in of(LogLine, found) if line.stream == "stdout"]


def test_file_that_is_not_the_snapshots_ends_the_attempt_as_data_corrupt(
    actor: RankActor, store: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("good")
    (tmp_path / "b.txt").write_text("evil")
    files = [
        {"path": name, "bytes": 4, "sha256": hashlib.sha256(b"good").hexdigest(), "split": "train"}
        for name in ("a.txt", "b.txt")
    ]
    manifest = canonical_json({"name": "words", "root": str(tmp_path), "files": files, "splits": {"train": "x"}})
    digest = BlobStore(open_store(store.as_uri())).put(manifest)
    spec = script_spec(store, {"train.py": READS_DATA}, hyperparameters={"lr": 0.1})
    found = run_to_end(actor, replace(spec, datasets=(DatasetInput(name="words", manifest_digest=digest),)))
    assert printed(found) == ["('train',) 0.1", "a.txt good"]
    exited = ended(found)
    assert exited.exit_code == 1
    assert exited.error is not None
    assert exited.error.trackway_reason == "DATA_CORRUPT"
    assert exited.error.exception_type.endswith("DataCorrupt")
    assert "b.txt" in exited.error.message
    assert exited.error.step == 3


def test_exception_carries_chain_frames_and_step(actor: RankActor, store: Path) -> None:
    spec = script_spec(store, {"job.py": FAILS})
    exited = ended(
        run_to_end(actor, replace(spec, entrypoint=Entrypoint(kind=EntrypointKind.FUNCTION, argv=("job:main",))))
    )
    assert exited.error is not None
    assert (exited.error.source, exited.error.exception_type) == ("sdk", "ValueError")
    assert exited.error.chain[0].startswith("RuntimeError: mat1 and mat2")
    assert (exited.error.frames[-1].function, exited.error.frames[-1].file.rpartition("/")[2]) == ("main", "job.py")
    assert exited.error.step == 7
    assert exited.error.trackway_reason is None
    assert exited.last_step == 7


NAN_LOSS = """
import trackway.training as tw
with tw.session() as s:
    s.report(1, loss=0.5, accuracy=float("nan"))
    s.report(2, loss=float("inf"))
    print("went on", flush=True)
"""


@pytest.mark.parametrize(("policy", "reason"), [("fail", "NUMERIC_DIVERGENCE"), ("ignore", None)])
def test_a_loss_that_is_no_number_ends_the_attempt_unless_it_is_to_be_ignored(
    actor: RankActor, store: Path, policy: str, reason: str | None
) -> None:
    spec = replace(script_spec(store, {"train.py": NAN_LOSS}), non_finite_loss=policy)
    found = run_to_end(actor, spec)
    exited = ended(found)
    assert (exited.error.trackway_reason if exited.error else None) == reason
    assert exited.last_step == 2
    assert printed(found) == ([] if reason else ["went on"])


def test_skip_policy_leaves_saves_out_and_counts_them(actor: RankActor, store: Path) -> None:
    found = run_to_end(actor, replace(script_spec(store, {"train.py": SAVES_OFTEN}), in_flight=InFlightPolicy.SKIP))
    said = printed(found)
    assert ended(found).exit_code == 0
    skipped = said.count("skipped")
    assert said.count("captured") == len(of(CheckpointPersisted, found)) == 20 - skipped
    assert skipped > 0
    counted = [dict(item.values).get("trackway/checkpoints_skipped", 0) for item in of(StepMetrics, found)]
    assert max(counted) == skipped


def test_wait_policy_saves_everything_that_was_asked_for(actor: RankActor, store: Path) -> None:
    found = run_to_end(actor, script_spec(store, {"train.py": SAVES_OFTEN}))
    assert printed(found) == ["captured"] * 20
    steps = [item.step for item in of(CheckpointPersisted, found)]
    assert steps == [item.step for item in of(CheckpointCaptured, found)] == list(range(1, 21))
    assert dict(of(CheckpointPersisted, found)[-1].metrics) == {"loss": 1.0}
