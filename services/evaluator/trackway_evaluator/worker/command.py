"""The command adapter: any program scores the tasks.

It is started in the unpacked code with one argument more, the path of a JSON file::

    {"protocol": 1, "checkpoint": {"folder", "run_id", "step", "manifest_digest"}, "hyperparameters": {…},
     "batch_size": 32, "decoding": {…},
     "tasks": [{"id", "split", "limit", "files": [{"path", "location", "sha256"}], "output"}]}

and writes to each task's `output` one JSON object a sample and line: `id`, `metrics` (name → number), and where
it likes `weight`, `slices`, `failed`, `error`, `prompt`, `output`, `target`. An exit code other than 0 is a crash.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from trackway_common.canonical import Json, canonical_json
from trackway_common.checkpoint.directory import restore_directory
from trackway_common.checkpoint.json_codec import to_json
from trackway_common.dataset_manifest import dataset_files
from trackway_common.errors import CommandRejected
from trackway_common.evaluation_pack import TaskSpec

from trackway_evaluator.protocol import VERSION, WorkRequest
from trackway_evaluator.worker.checkpoint import manifest_of
from trackway_evaluator.worker.inputs import Inputs
from trackway_evaluator.worker.sample import Row

_FIELDS = {field.name for field in dataclasses.fields(Row)}


def run_command(request: WorkRequest, inputs: Inputs, folder: Path) -> dict[str, list[Row]]:
    """Run the pack's command to its end and return each task's rows.

    Raises:
        subprocess.CalledProcessError: it failed.
        CommandRejected: it wrote something else than sample lines.
    """
    checkpoint = folder / "checkpoint"
    restore_directory(inputs.store, manifest_of(inputs.store, request.checkpoint), checkpoint)
    written = folder / "command.json"
    written.write_bytes(canonical_json(_command_request(request, inputs, folder, checkpoint)))
    subprocess.run([*inputs.pack.evaluator.command, str(written)], cwd=inputs.code, check=True)
    return {task.id: list(_rows(_output(folder, task), task)) for task in inputs.pack.tasks}


def _command_request(request: WorkRequest, inputs: Inputs, folder: Path, checkpoint: Path) -> Json:
    return {
        "protocol": VERSION,
        "checkpoint": {
            "folder": str(checkpoint),
            "run_id": request.run_id,
            "step": request.checkpoint.step,
            "manifest_digest": request.checkpoint.manifest_digest,
        },
        "hyperparameters": json.loads(request.hyperparameters_json or "{}"),
        "batch_size": request.batch_size,
        "decoding": to_json(inputs.pack.decoding),
        "tasks": [_task(task, inputs, folder) for task in inputs.pack.tasks],
    }


def _task(task: TaskSpec, inputs: Inputs, folder: Path) -> Json:
    files = dataset_files(inputs.datasets[task.dataset].manifest, task.split)
    for file in files:
        file.read_bytes()  # Checked here, because the command can't be trusted to.
    return {
        "id": task.id,
        "split": task.split,
        "limit": task.limit,
        "files": [{"path": f.path, "location": str(f.location), "sha256": f.entry.sha256} for f in files],
        "output": str(_output(folder, task)),
    }


def _output(folder: Path, task: TaskSpec) -> Path:
    return folder / f"{task.id}.jsonl"


def _rows(path: Path, task: TaskSpec) -> Iterator[Row]:
    if not path.exists():
        raise CommandRejected(f"the command wrote no {path.name} for task {task.id}", reason="BAD_SAMPLE")
    seen: set[str] = set()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        row = _row(line, f"{path.name}, line {number}")
        if row.id in seen:
            raise CommandRejected(f"{path.name}, line {number}: {row.id!r} stands twice", reason="BAD_SAMPLE")
        seen.add(row.id)
        yield row


def _row(line: str, where: str) -> Row:
    try:
        members = json.loads(line)
        metrics = {str(name): float(value) for name, value in members.pop("metrics", {}).items()}
        slices = {str(name): str(value) for name, value in members.pop("slices", {}).items()}
        if unknown := set(members) - _FIELDS:
            raise ValueError(f"unknown fields {', '.join(sorted(unknown))}")
        return Row(**{**members, "id": str(members["id"]), "metrics": metrics, "slices": slices})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandRejected(f"{where} is no sample: {type(error).__name__}: {error}", reason="BAD_SAMPLE") from error
