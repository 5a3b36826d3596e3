"""One try as a process: real torch, a real checkpoint, files in and files out."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from trackway_common.events import EvaluationPackRef, TaskMetric, TaskResult
from trackway_evaluator.adapters.evidence_store import EvidenceStore
from trackway_evaluator.protocol import (
    DatasetInput,
    WorkFailure,
    WorkFolder,
    WorkProcess,
    WorkRequest,
    WorkResult,
    held_lock,
    read_record,
    write_record,
)
from trackway_evaluator.worker import __main__ as worker
from trackway_evaluator.worker.sample_store import read_rows

from .conftest import COMMAND_PACK, PACK, World

COUNTER_PACK = """
apiVersion: trackway/v1
kind: EvaluationPack
name: counter
evaluator: {adapter: builtin, batch_size: 6}
tasks:
  - {id: bpb, version: "1", kind: bits_per_byte, dataset: points, split: test, data: "toy.data:letters", limit: 10}
  - {id: next, version: "1", kind: completion, dataset: points, split: test, data: "toy.data:prompts",
     decode: "toy.data:decode", context: 8}
decoding: {temperature: 0.0, max_tokens: 4, stop_tokens: [117], seed: 3}
"""


def request_of(world: World, pack: EvaluationPackRef, *, kind: str = "linear", **changes: object) -> WorkRequest:
    request = WorkRequest(
        evaluation_id="e1",
        attempt=1,
        run_id=world.checkpoints[kind].run_id,
        store_url=world.store_url,
        pack_digest=pack.digest,
        checkpoint=world.checkpoints[kind],
        code_archive_digest=world.code_digest,
        model="toy.model:build" if kind == "linear" else "toy.model:build_counter",
        hyperparameters_json="{}",
        datasets=(DatasetInput(name="points", manifest_digest=world.dataset_digest),),
        batch_size=8,
    )
    return dataclasses.replace(request, **changes)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _clean_process() -> Iterator[None]:
    """Undo what a try leaves in an interpreter that goes on: imports, its path, torch's switches."""
    path, threads = [*sys.path], torch.get_num_threads()
    yield
    sys.path[:] = path
    _forget_imports()
    torch.set_num_threads(threads)
    torch.set_deterministic_debug_mode("default")


def _forget_imports() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy"]:
        del sys.modules[name]


def written(folder: Path, request: WorkRequest) -> Path:
    path = folder / str(request.attempt) / "request.json"
    path.parent.mkdir(parents=True)
    write_record(path, request)
    return path


def run_worker(folder: Path, request: WorkRequest) -> int:
    """Run a try in this process: importing torch again takes longer than the try."""
    return worker.main(written(folder, request))


def run_process(folder: Path, request: WorkRequest) -> int:
    path = written(folder, request)
    argv = [sys.executable, "-P", "-m", "trackway_evaluator.worker", str(path)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(argv, cwd=path.parent, env=environment, check=False, capture_output=True).returncode


def result_of(folder: Path, attempt: int = 1) -> WorkResult:
    result = read_record(WorkResult, folder / str(attempt) / "result.json")
    assert result is not None, read_record(WorkFailure, folder / str(attempt) / "failure.json")
    return result


def failure_of(folder: Path) -> WorkFailure:
    failure = read_record(WorkFailure, folder / "1" / "failure.json")
    assert failure is not None
    return failure


def metric(task: TaskResult, name: str, of: str = "") -> TaskMetric:
    return next(one for one in task.metrics if (one.name, one.slice) == (name, of))


def test_classification_scores_what_the_checkpoint_says(world: World, tmp_path: Path) -> None:
    assert run_process(tmp_path, request_of(world, world.put_pack())) == 0
    result = result_of(tmp_path)
    [task] = result.tasks
    accuracy = metric(task, "accuracy")
    assert (task.planned, task.scored, task.errored, task.skipped) == (50, 50, 0, 0)
    assert accuracy.value == pytest.approx(0.9)
    assert accuracy.stderr == pytest.approx(math.sqrt(0.9 * 0.1 / 49))
    assert accuracy.stderr_method == "sem"
    assert accuracy.primary
    by_label = [metric(task, "accuracy", f"label={label}") for label in (0, 1)]
    assert sum(one.samples for one in by_label) == 50
    assert sum(one.value * one.samples for one in by_label) == pytest.approx(45)
    assert task.dataset_digest == world.dataset_digest


def test_shards_hold_every_sample_and_some_failures(world: World, tmp_path: Path) -> None:
    assert run_worker(tmp_path, request_of(world, world.put_pack())) == 0
    samples, failures = result_of(tmp_path).shards
    assert (samples.kind, samples.rows, failures.kind, failures.rows) == ("samples", 50, "failures", 2)
    content = (tmp_path / samples.path).read_bytes()
    assert hashlib.sha256(content).hexdigest() == samples.sha256
    rows = read_rows(tmp_path / samples.path)
    assert len({row.id for row in rows}) == 50
    assert sum(row.failed for row in rows) == 5
    assert all(row.output in {"0", "1"} and row.target in {"0", "1"} for row in rows)
    assert all(row.failed for row in read_rows(tmp_path / failures.path))


def test_task_digest_as_executed_is_what_the_inputs_promise(world: World, tmp_path: Path) -> None:
    pack = world.put_pack()
    assert run_worker(tmp_path, request_of(world, pack)) == 0
    store = EvidenceStore(world.blobs)
    expected = store.expected_digests(store.pack(pack.digest), world.spec(pack))
    assert {task.task: task.task_digest for task in result_of(tmp_path).tasks} == expected


def test_bits_per_byte_and_completion(world: World, tmp_path: Path) -> None:
    pack = world.put_pack(COUNTER_PACK)
    assert run_worker(tmp_path, request_of(world, pack, kind="counter")) == 0
    bpb, completion = result_of(tmp_path).tasks
    expected = -math.log2(math.exp(10) / (math.exp(10) + 255))
    assert metric(bpb, "bits_per_byte").value == pytest.approx(expected, rel=1e-3)
    assert bpb.planned == 10
    assert bpb.decoding_digest == completion.decoding_digest
    # Greedy output counts on for four letters, so only the prompts two before the stop token match exactly.
    rows = {row.id: row for row in read_rows(tmp_path / "shards/next.samples.parquet")}
    assert rows["a"].output == "bcde"
    assert rows["a"].metrics == {"exact_match": 0.0, "matching_prefix": 1.0, "output_length": 4.0}
    assert rows["r"].output == "st"
    assert rows["r"].metrics["exact_match"] == 1.0
    assert completion.decoding_digest.startswith("sha256:")
    assert '"temperature":0' in completion.decoding_json


def test_sampling_does_not_depend_on_batches(world: World, tmp_path: Path) -> None:
    pack = world.put_pack(COUNTER_PACK.replace("temperature: 0.0", "temperature: 4.0, top_p: 0.9"))
    for number, batch_size in enumerate((3, 20)):
        request = request_of(world, pack, kind="counter", batch_size=batch_size)
        assert run_worker(tmp_path / str(number), request) == 0
        _forget_imports()
    first, second = (read_rows(tmp_path / str(n) / "shards/next.samples.parquet") for n in range(2))
    assert first == second
    assert len({row.output for row in first}) > 10


def test_second_try_scores_only_what_is_missing(world: World, tmp_path: Path) -> None:
    pack = world.put_pack()
    assert run_worker(tmp_path, request_of(world, pack)) == 0
    _forget_imports()
    [store] = (tmp_path / "samples").iterdir()
    parts = sorted(store.iterdir())
    assert len(parts) == 7
    kept = [part.stat().st_mtime_ns for part in parts[:-1]]
    parts[-1].unlink()
    assert run_worker(tmp_path, request_of(world, pack, attempt=2)) == 0
    assert [part.stat().st_mtime_ns for part in sorted(store.iterdir())[:-1]] == kept
    assert result_of(tmp_path, 2).tasks == result_of(tmp_path, 1).tasks


def test_command_of_any_language_reports_lines(world: World, tmp_path: Path) -> None:
    assert run_worker(tmp_path, request_of(world, world.put_pack(COMMAND_PACK))) == 0, failure_of(tmp_path)
    result = result_of(tmp_path)
    [task] = result.tasks
    assert (task.planned, task.scored, task.errored) == (5, 4, 1)
    assert metric(task, "score").value == pytest.approx(0.375)
    assert {(shard.kind, shard.rows) for shard in result.shards} == {("samples", 5), ("failures", 2)}


@pytest.mark.parametrize(
    ("changes", "failure", "words"),
    [
        ({"model": "toy.model:nothing"}, "CONFIG_INVALID", "toy.model:nothing is no function"),
        ({"model": "absent.model:build"}, "CONFIG_INVALID", "absent.model can't be imported"),
        ({"model": ""}, "CONFIG_INVALID", "names no evaluation.model"),
        ({"hyperparameters_json": '{"classes": 3}'}, "CONFIG_INVALID", "holds another model"),
        ({"hyperparameters_json": '{"raise": "bug"}'}, "CRASH", "ZeroDivisionError"),
        ({"hyperparameters_json": '{"raise": "memory"}'}, "OOM", "MemoryError"),
        ({"pack_digest": "sha256:" + "0" * 64}, "CONFIG_INVALID", "does not exist"),
        ({"datasets": ()}, "CONFIG_INVALID", "is not a dataset of the run"),
    ],
)
def test_failure_says_why(world: World, tmp_path: Path, changes: dict[str, object], failure: str, words: str) -> None:
    assert run_worker(tmp_path, request_of(world, world.put_pack(), **changes)) == 1
    told = failure_of(tmp_path)
    assert told.failure == failure
    assert words in told.message
    assert not (tmp_path / "1/result.json").exists()


def test_bad_samples_are_refused(world: World, tmp_path: Path) -> None:
    pack = world.put_pack(PACK.replace("toy.data:samples", "toy.data:nameless").replace("slices: [label]", "limit: 1"))
    assert run_worker(tmp_path, request_of(world, pack)) == 1
    assert "every sample needs one of its own" in failure_of(tmp_path).message


def test_damaged_checkpoint_is_never_scored(world: World, tmp_path: Path) -> None:
    damaged = dataclasses.replace(world.checkpoints["linear"], manifest_digest="sha256:" + "1" * 64)
    assert run_worker(tmp_path, request_of(world, world.put_pack(), checkpoint=damaged)) == 1
    assert "is not what was committed" in failure_of(tmp_path).message


def test_only_one_process_of_an_evaluation(world: World, tmp_path: Path) -> None:
    with held_lock(WorkFolder(tmp_path)):
        assert run_process(tmp_path, request_of(world, world.put_pack())) == 1
    assert read_record(WorkProcess, tmp_path / "1/process.json") is None
    assert not (tmp_path / "1/result.json").exists()
