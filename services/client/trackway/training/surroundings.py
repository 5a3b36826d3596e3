"""What the environment says about this process: torchrun's contract and Trackway's. Read once."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

IN_FLIGHT_SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """This process among those of the run."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPointer:
    """A dataset of the run, by its manifest's file."""

    name: str
    manifest: Path
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePointer:
    """The checkpoint to continue from."""

    folder: Path
    manifest_digest: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervised:
    """What only a run under Trackway has."""

    socket: Path
    run_id: str
    attempt_token: str
    skips_when_busy: bool
    fails_on_non_finite_loss: bool
    error_file: Path
    stacks: Path
    config: Path
    datasets: tuple[DatasetPointer, ...]
    resume: ResumePointer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Everything that the environment says."""

    ranks: Ranks
    seed: int | None
    deterministic: bool
    threads: int
    supervised: Supervised | None
    """Absent: the program was started by hand."""
    local_folder: Path
    """Where a program that was started by hand keeps its checkpoints."""
    program: str = field(default_factory=lambda: Path(sys.argv[0]).stem or "interactive")


def read_surroundings(environment: Mapping[str, str]) -> Surroundings:
    """Interpret the environment; nothing is required, since a program may be started by hand."""
    seed = environment.get("TRACKWAY_SEED")
    return Surroundings(
        ranks=Ranks(
            rank=int(environment.get("RANK", "0")),
            local_rank=int(environment.get("LOCAL_RANK", "0")),
            world_size=int(environment.get("WORLD_SIZE", "1")),
        ),
        seed=int(seed) if seed is not None else None,
        deterministic=environment.get("TRACKWAY_DETERMINISTIC") == "1",
        threads=int(environment.get("OMP_NUM_THREADS", "1")),
        supervised=_supervised(environment) if "TRACKWAY_RANK_SOCKET" in environment else None,
        local_folder=Path(environment.get("TRACKWAY_LOCAL_DIR", ".trackway")),
    )


def _supervised(environment: Mapping[str, str]) -> Supervised:
    return Supervised(
        socket=Path(environment["TRACKWAY_RANK_SOCKET"]),
        run_id=environment["TRACKWAY_RUN_ID"],
        attempt_token=environment["TRACKWAY_ATTEMPT_TOKEN"],
        skips_when_busy=environment.get("TRACKWAY_IN_FLIGHT") == IN_FLIGHT_SKIP,
        fails_on_non_finite_loss=environment.get("TRACKWAY_NON_FINITE_LOSS") != "ignore",
        error_file=Path(environment["TRACKWAY_ERROR_FILE"]),
        stacks=Path(environment["TRACKWAY_STACKS"]),
        config=Path(environment["TRACKWAY_CONFIG"]),
        datasets=_datasets(Path(environment["TRACKWAY_DATASETS"])),
        resume=_resume(environment),
    )


def _datasets(index: Path) -> tuple[DatasetPointer, ...]:
    entries: list[dict[str, Any]] = json.loads(index.read_text(encoding="utf-8"))
    return tuple(
        DatasetPointer(name=entry["name"], manifest=Path(entry["manifest"]), weight=entry["weight"])
        for entry in entries
    )


def _resume(environment: Mapping[str, str]) -> ResumePointer | None:
    if "TRACKWAY_RESUME_FROM" not in environment:
        return None
    return ResumePointer(
        folder=Path(environment["TRACKWAY_RESUME_FROM"]),
        manifest_digest=environment["TRACKWAY_RESUME_MANIFEST_DIGEST"],
        step=int(environment["TRACKWAY_RESUME_STEP"]),
    )
