"""Brings everything that a trainer needs to its node: code, hyperparameters, dataset manifests, resume target."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from trackway_common.checkpoint.directory import LAYOUT, restore_directory
from trackway_common.checkpoint.layout import checkpoint_prefix, parse_path
from trackway_common.checkpoint.manifest import load_manifest
from trackway_common.code_archive import materialise
from trackway_common.errors import TrackwayError
from trackway_common.object_store import BlobStore, ObjectStore

from trackway_trainer_agent.worker.rank_spec import RankSpec, ResumeTarget
from trackway_trainer_agent.worker.trainer_environment import command_line, trainer_environment
from trackway_trainer_agent.worker.workplace import Workplace

Stage = Literal["code", "inputs", "resume", "execute"]


class PreparationFailed(Exception):
    """The trainer can't be started."""

    def __init__(self, stage: Stage, message: str) -> None:
        super().__init__(message)
        self.stage: Stage = stage
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What to execute, where, with which environment."""

    argv: tuple[str, ...]
    folder: Path
    python: str
    environment: dict[str, str]


def prepare(spec: RankSpec, *, place: Workplace, store: ObjectStore) -> Prepared:
    """Fetch, verify and write down; blocks for as long as the store takes.

    Raises:
        PreparationFailed: with the stage that failed.
    """
    blobs = BlobStore(store)
    python = spec.python or sys.executable
    with _stage("code"):
        code = _code(spec, place, blobs)
        argv = command_line(spec, python=python, code=code)
    with _stage("inputs"):
        _write_inputs(spec, place, blobs)
    with _stage("resume"):
        resume = _resume_folder(spec.resume, place, store) if spec.resume is not None else None
    environment = trainer_environment(spec, place=place, code=code, resume=resume, inherited=os.environ)
    return Prepared(argv=argv, folder=code, python=python, environment=environment)


@contextmanager
def _stage(stage: Stage) -> Iterator[None]:
    try:
        yield
    except (TrackwayError, OSError) as error:
        raise PreparationFailed(stage, f"{type(error).__name__}: {error}") from error


def _code(spec: RankSpec, place: Workplace, blobs: BlobStore) -> Path:
    digest = spec.code_archive_digest
    if digest is None:
        return place.root
    return materialise(digest, lambda: blobs.get(digest), place.code_cache)


def _write_inputs(spec: RankSpec, place: Workplace, blobs: BlobStore) -> None:
    place.config.write_text(spec.hyperparameters_json, encoding="utf-8")
    index = []
    for number, dataset in enumerate(spec.datasets):
        manifest = place.datasets / f"{number}.json"
        manifest.write_bytes(blobs.get(dataset.manifest_digest))
        index.append({"name": dataset.name, "manifest": str(manifest), "weight": dataset.weight})
    (place.datasets / "index.json").write_text(json.dumps(index), encoding="utf-8")


def _resume_folder(target: ResumeTarget, place: Workplace, store: ObjectStore) -> Path | None:
    """A program's own folder is copied back, every byte checked; the SDK reads, and checks, from the store itself."""
    name = parse_path(target.path)
    manifest = load_manifest(store, target.run_id, name, target.manifest_digest)
    if manifest.layout != LAYOUT:
        return store.local_path(checkpoint_prefix(target.run_id, name))
    folder = place.resume / str(target.step)
    restore_directory(store, manifest, folder)
    return folder
