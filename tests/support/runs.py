"""Submit small trainings and follow them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from trackway import TrackwayClient
from trackway.client.patience import Patience
from trackway.client.resources import Run, RunFact

TRAINING = Path(__file__).parent.parent / "e2e/training"
DATASET = "numbers"


@dataclass
class Followed:
    """A run's facts as the test's own client was told them, in order."""

    run_id: str
    facts: list[RunFact] = field(default_factory=list)

    def named(self, name: str) -> list[Mapping[str, Any]]:
        """Fields of every fact of one name."""
        return [fact.fields for fact in self.facts if fact.fact == name]

    def one(self, name: str) -> Mapping[str, Any]:
        """Fields of the only fact of one name."""
        [fields] = self.named(name)
        return fields


def spec(folder: Path, *, name: str = "run.yaml", **changes: Any) -> Path:
    """Write a run spec for the tests' training into a folder and return its path; None removes a field."""
    body: dict[str, Any] = {
        "apiVersion": "trackway/v1",
        "kind": "TrainingRun",
        "project": "tests",
        "model_family": "tiny",
        "entrypoint": {"function": "train:main"},
        "code": {"path": str(TRAINING)},
        "compute": "local-cpu-2x",
        "datasets": [DATASET],
        "topology": {"world_size": 2, "strategy": "ddp", "checkpoint": {"keep_last": 3, "in_flight": "wait"}},
        "hyperparameters": {"steps": 30, "checkpoint_every": 5, "width": 16},
        "retry": {"unknown_kill": {"max": 3, "backoff_s": 0.2}, "process_crash": {"max": 2, "backoff_s": 0.2}},
        "seed": 7,
    }
    for key, value in changes.items():
        if key == "hyperparameters":
            body[key] = body[key] | value
        elif value is None:
            del body[key]
        else:
            body[key] = value
    path = folder / name
    path.write_text(yaml.safe_dump(body))
    return path


def submit(client: TrackwayClient, config: Path) -> str:
    """Submit a spec and return the run's id."""
    return client.submit(config).run_id


def follow(
    client: TrackwayClient, run_id: str, on_fact: Callable[[Followed], None] = lambda followed: None
) -> Followed:
    """Watch a run to its end; ``on_fact`` sees each fact as it comes."""
    followed = Followed(run_id)
    for fact in client.watch(run_id, patience=Patience()):
        followed.facts.append(fact)
        on_fact(followed)
    return followed


def ended(client: TrackwayClient, run_id: str) -> Run:
    """The run after it has ended."""
    run = client.get_run(run_id)
    assert run.ended, f"{run_id} is {run.phase}"
    return run


def trainer_pid(followed: Followed, rank: int) -> int:
    """Process id of a rank's trainer in the newest attempt."""
    ranks = followed.named("AttemptStarted")[-1]["ranks"]
    return int(next(entry["trainer_pid"] for entry in ranks if entry["rank"] == rank))


def losses(client: TrackwayClient, run_id: str) -> dict[int, float]:
    """Loss of rank 0 by step, the newest attempt's where a step ran twice; bit-exact."""
    rows = client.query(
        "select step, argMax(value, attempt) as loss from metrics "
        f"where run_id = '{run_id}' and rank = 0 and name = 'loss' group by step order by step",
        max_rows=10_000,
    ).rows
    return {int(step): float(loss) for step, loss in rows}  # type: ignore[arg-type] # JSON numbers


def dump(value: object) -> str:
    """JSON for an assertion's message."""
    return json.dumps(value, indent=1, default=str)
