"""Canonical form and digests: what makes two packs, tasks or evaluations the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from trackway_common.canonical import Json, canonical_json, digest, digest_bytes
from trackway_common.evaluation_pack.model import Decoding, EvaluationPack, TaskKind, TaskSpec
from trackway_common.evaluation_pack.parse import API_VERSION, KIND
from trackway_common.ids import Digest, EvaluationId

SCORER_VERSIONS: Mapping[TaskKind, str] = {
    TaskKind.CLASSIFICATION: "1",
    TaskKind.BITS_PER_BYTE: "1",
    TaskKind.COMPLETION: "1",
    TaskKind.COMMAND: "",
}
"""Raised with every change of a scorer that can change a score. A command's is its code's digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInputs:
    """What a task's definition leaves open: the content behind its names."""

    dataset_digest: str
    """Of the dataset's manifest."""
    data_source_digest: str
    """Of the source file that `data` (or the command's first word, where it is a file) names."""


def pack_json(pack: EvaluationPack) -> Json:
    """The pack with every default written out; parsing it gives the same pack."""
    body = _plain({field.name: getattr(pack, field.name) for field in dataclasses.fields(pack)})
    assert isinstance(body, Mapping)
    return {"apiVersion": API_VERSION, "kind": KIND, **body}


def pack_bytes(pack: EvaluationPack) -> bytes:
    """Canonical JSON: what is stored as the pack's blob."""
    return canonical_json(pack_json(pack))


def pack_digest(pack: EvaluationPack) -> Digest:
    """Identity of the pack: digest of ``pack_bytes``."""
    return digest_bytes(pack_bytes(pack))


def task_digest(task: TaskSpec, decoding: Decoding, inputs: TaskInputs) -> Digest:
    """Identity of a task as executed: definition, decoding where it samples, data, data code and scorer."""
    return digest(
        {
            "task": _plain(task),
            "decoding": _plain(decoding) if task.kind is TaskKind.COMPLETION else None,
            "dataset_digest": inputs.dataset_digest,
            "data_source_digest": inputs.data_source_digest,
            "scorer": {"kind": task.kind.value, "version": SCORER_VERSIONS[task.kind]},
        }
    )


def decoding_json(decoding: Decoding) -> str:
    """Canonical JSON of how completions are sampled."""
    return canonical_json(_plain(decoding)).decode()


def decoding_digest(decoding: Decoding) -> Digest:
    """Digest of ``decoding_json``."""
    return digest(_plain(decoding))


def evaluation_identity(pack_digest: str, checkpoint_manifest_digest: str, runner: Json = None) -> EvaluationId:
    """The same pack on the same checkpoint with the same runner parameters is one evaluation."""
    full = digest({"pack": pack_digest, "checkpoint": checkpoint_manifest_digest, "runner": runner})
    return EvaluationId(full.removeprefix("sha256:")[:32])


def _plain(value: object) -> Json:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return [_plain(item) for item in value]
        case Mapping():
            return {key: _plain(item) for key, item in value.items()}
        case _ if dataclasses.is_dataclass(value):
            return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} is no part of a pack")
