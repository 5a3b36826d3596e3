"""Plays one fault on a stack: submit, hurt, wait for the decision, cancel what would go on."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from subprocess import SubprocessError
from typing import Any

import yaml
from trackway.client.patience import Patience
from trackway.client.resources import RunFact
from trackway_common.errors import TrackwayError

from tests.faults.corpus.injection import Act, Injection
from tests.faults.corpus.injections import INJECTIONS
from tests.faults.corpus.injections.in_program import PROGRAMS
from tests.faults.corpus.label import Label
from tests.faults.corpus.scene import Scene
from tests.support.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A fault that was played; the log has the rest."""

    label: Label
    run_id: str
    hurt: tuple[dict[str, Any], ...]
    observations: frozenset[str]
    """Blobs that receipts name as what the classifier saw."""
    seconds: float
    trouble: str = ""
    """What kept the harness from injecting it; empty where nothing did."""


def play(stack: Stack, label: Label) -> Played:
    """Have the fault happen; returns once its run has ended."""
    injection, begun_s = INJECTIONS[label.name], time.monotonic()
    with ExitStack() as cleanup:
        meeting = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="corpus-", ignore_cleanup_errors=True)))
        client = cleanup.enter_context(stack.client())
        scene = Scene(stack=stack, client=client, label=label, meeting=meeting, cleanup=cleanup)
        try:
            trouble = _play(scene, injection)
        except (AssertionError, OSError, TrackwayError) as error:
            trouble = f"{type(error).__name__}: {error}"
        finally:
            scene.say("go")
            scene.say("stop")
        return Played(
            label=label,
            run_id=scene.followed.run_id,
            hurt=tuple(scene.hurt),
            observations=frozenset(_observations(scene)),
            seconds=time.monotonic() - begun_s,
            trouble=trouble,
        )


def _observations(scene: Scene) -> Iterator[str]:
    for ended in scene.followed.named("AttemptEnded"):
        if digest := ended.get("observations_digest"):
            yield str(digest)


def _play(scene: Scene, injection: Injection) -> str:
    scene.followed.run_id = scene.client.submit(_spec(scene, injection)).run_id
    limit = threading.Timer(injection.limit_s, _give_up, (scene,))
    limit.daemon = True
    limit.start()
    try:
        return _follow(scene, injection)
    finally:
        limit.cancel()


def _follow(scene: Scene, injection: Injection) -> str:
    due, trouble = list(injection.acts), ""
    for fact in scene.client.watch(scene.followed.run_id, patience=Patience()):
        scene.followed.facts.append(fact)
        try:
            due = _act(scene, fact, due)
        except (AssertionError, OSError, ValueError, KeyError, SubprocessError, TrackwayError) as error:
            due, trouble = [], f"{type(error).__name__}: {error}"
            _give_up(scene)
        if fact.fact == "RetryDecided" and fact.fields["attempt"] == scene.label.attempt:
            _cancel(scene)
    return trouble


def _act(scene: Scene, fact: RunFact, due: list[Act]) -> list[Act]:
    for act in due:
        if act.on == fact.fact and act.attempt <= max(1, scene.attempt):
            act.do(scene)
            return [other for other in due if other is not act]
    return due


def _cancel(scene: Scene) -> None:
    """Nobody needs the attempts that would follow; a run that is over has nothing to cancel."""
    if not scene.client.get_run(scene.followed.run_id).ended:
        try:
            scene.client.cancel(scene.followed.run_id, reason="the corpus has seen what it wanted")
        except TrackwayError:
            assert scene.client.get_run(scene.followed.run_id).ended


def _give_up(scene: Scene) -> None:
    with scene.stack.client() as client:
        client.cancel(scene.followed.run_id, reason="the corpus waited long enough")


def _spec(scene: Scene, injection: Injection) -> Path:
    found = dict(injection.before(scene))
    hyperparameters = {"kind": injection.kind, "meeting": str(scene.meeting)} | found.pop("hyperparameters", {})
    ranks = scene.label.ranks
    body: dict[str, Any] = {
        "apiVersion": "trackway/v1",
        "kind": "TrainingRun",
        "project": "tests",
        "model_family": "corpus",
        "entrypoint": dict(injection.entry),
        "code": {"path": str(PROGRAMS)},
        "compute": "local-cpu-2x",
        "topology": {"world_size": ranks, "strategy": "ddp" if ranks > 1 else "single"},
        "hyperparameters": hyperparameters,
        "seed": 7,
    }
    path = scene.meeting / "run.yaml"
    path.write_text(yaml.safe_dump(body | dict(injection.spec) | found))
    return path
